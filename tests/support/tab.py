"""A browser tab without scripts: it keeps cookies, follows redirects, and sends the forms of its page.

Controls are found as people find them: by what is written on them.
"""

import asyncio
import gzip
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from tests.integration.uploads.caller import Caller, Reply

ORIGIN = "http://testserver"
MULTIPART = "multipart/form-data"
VOID = {"input", "img", "br", "link", "meta", "hr", "source"}


@dataclass(frozen=True)
class Attachment:
    """A file that was chosen in a form, as the browser sends it."""

    file_name: str
    content: bytes
    mime_type: str

    @classmethod
    def of(cls, path: Path) -> "Attachment":
        return cls(path.name, path.read_bytes(), mimetypes.guess_type(path.name)[0] or "application/octet-stream")


NOTHING_CHOSEN = Attachment("", b"", "application/octet-stream")
Value = str | Attachment


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    children: "list[Element | str]" = field(default_factory=list)

    @property
    def text(self) -> str:
        """What a reader sees of it, white space as one blank."""
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return re.sub(r"\s+", " ", " ".join(parts)).strip()

    @property
    def raw_text(self) -> str:
        return "".join(child if isinstance(child, str) else child.raw_text for child in self.children)

    def of_class(self, name: str) -> "list[Element]":
        return [one for one in self.all() if one.attributes.get("class") == name]

    def all(self, *tags: str) -> "list[Element]":
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if not tags or child.tag in tags:
                    found.append(child)
                found += child.all(*tags)
        return found

    def within(self, tag: str) -> "Element | None":
        """The nearest of this kind around it."""
        at = self.parent
        while at is not None and at.tag != tag:
            at = at.parent
        return at


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self._at = Element("#page", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self._at)
        self._at.children.append(element)
        if tag not in VOID:
            self._at = element

    def handle_endtag(self, tag: str) -> None:
        at: Element | None = self._at
        while at is not None and at.tag != tag:
            at = at.parent
        if at is not None and at.parent is not None:
            self._at = at.parent

    def handle_data(self, data: str) -> None:
        self._at.children.append(data)


class Page:
    """What the browser shows."""

    def __init__(self, reply: Reply, url: str) -> None:
        self.reply, self.url = reply, url
        self.html = reply.body.decode() if reply.headers.get("content-encoding") != "gzip" else ""
        if not self.html and reply.body:
            self.html = gzip.decompress(reply.body).decode()
        reader = _Reader()
        reader.feed(self.html)
        self.root = reader.root

    @property
    def status(self) -> int:
        return self.reply.status

    @property
    def path(self) -> str:
        parts = urlsplit(self.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @property
    def heading(self) -> str:
        (heading,) = self.root.all("h1")
        return heading.text

    @property
    def title(self) -> str:
        return self.root.all("title")[0].text

    @property
    def text(self) -> str:
        return self.root.all("main")[0].text

    def role(self, role: str) -> str:
        """What is said in the elements of this role."""
        return " ".join(one.text for one in self.root.all() if one.attributes.get("role") == role).strip()

    def links(self) -> dict[str, str]:
        """Where each link leads, by what is written on it."""
        return {name_of(one): urljoin(self.url, one.attributes["href"]) for one in self.root.all("a")}

    def button(self, name: str) -> Element:
        found = [one for one in self.root.all("button") if name_of(one) == name]
        assert found, f"no button {name!r} among {[name_of(one) for one in self.root.all('button')]}"
        return found[0]

    def has_button(self, name: str) -> bool:
        return any(name_of(one) == name for one in self.root.all("button"))

    def form_of(self, button: Element) -> Element:
        form = button.within("form")
        assert form is not None
        return form

    def field(self, label: str) -> Element:
        """The control with this label."""
        for one in self.root.all("label"):
            if one.text.partition(" (")[0] == label or one.text == label:
                within = one.all("input", "select", "textarea")
                return within[0] if within else self.by_id(one.attributes["for"])
        raise AssertionError(f"no field {label!r} among {[one.text for one in self.root.all('label')]}")

    def chosen(self, label: str) -> list[str]:
        """The options of this select that are chosen in the page."""
        return [one.text for one in self.field(label).all("option") if "selected" in one.attributes]

    @property
    def token(self) -> str:
        """The token of its forms."""
        return self.boxes("csrf")[0].attributes["value"]

    def by_id(self, wanted: str) -> Element:
        return next(one for one in self.root.all() if one.attributes.get("id") == wanted)

    def boxes(self, name: str) -> list[Element]:
        """The inputs of this name."""
        return [one for one in self.root.all("input") if one.attributes.get("name") == name]


def name_of(element: Element) -> str:
    """The accessible name, nearly."""
    return element.attributes.get("aria-label") or element.text


def multipart(fields: Sequence[tuple[str, Value]]) -> tuple[bytes, str]:
    """A form with files as a browser sends it: its body, and the type that names its boundary."""
    boundary = "----formboundary7MA4YWxkTrZu0gW"
    body = b""
    for name, value in fields:
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        if isinstance(value, Attachment):
            body += f'; filename="{value.file_name}"\r\nContent-Type: {value.mime_type}'.encode()
            body += b"\r\n\r\n" + value.content
        else:
            body += b"\r\n\r\n" + re.sub("\r?\n", "\r\n", value).encode()
        body += b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"{MULTIPART}; boundary={boundary}"


class Tab:
    def __init__(self, app: Any, origin: str = ORIGIN, headers: dict[str, str] | None = None) -> None:
        self.caller = Caller(app, "")
        self.origin = origin
        self.headers = headers or {}
        self.cookies: dict[str, str] = {}
        self.page: Page

    def __enter__(self) -> "Tab":
        self.caller.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.caller.__exit__()

    # --- going about -------------------------------------------------------------------------------------------------

    def open(self, path: str) -> Page:
        """Open an address of the appliance, and follow where it leads to."""
        return self._load("GET", urljoin(self.origin, path))

    def follow(self, name: str) -> Page:
        """Click a link of the page."""
        return self._load("GET", self.page.links()[name])

    def press(self, name: str, values: dict[str, Any] | None = None, *, on: str | None = None) -> Page:
        """Press a button of the page, or of the page at `on`, after fields were filled in: by their labels, or with `#`
        by their names. A list is several choices; True and False tick a box; a path is a file to be sent along."""
        if on is not None:
            self.open(on)
        button = self.page.button(name)
        form = self.page.form_of(button)
        fields = self.fields_of(form, button)
        for label, value in (values or {}).items():
            key = label.removeprefix("#") if label.startswith("#") else self.page.field(label).attributes["name"]
            own = self.page.field(label) if not label.startswith("#") else None
            if isinstance(value, bool):
                ticked = own.attributes.get("value", "on") if own is not None else "on"
                fields = [(k, v) for k, v in fields if (k, v) != (key, ticked)]
                fields += [(key, ticked)] if value else []
                continue
            fields = [(k, v) for k, v in fields if k != key]
            chosen = value if isinstance(value, list) else [value]
            fields += [(key, Attachment.of(one) if isinstance(one, Path) else one) for one in chosen]
        return self.send(form, fields, button.attributes.get("formaction"))

    def send(self, form: Element, fields: Sequence[tuple[str, Value]], action: str | None = None) -> Page:
        action = urljoin(self.page.url, action or form.attributes.get("action", "") or self.page.url)
        if form.attributes.get("method", "get").lower() == "get":
            return self._load("GET", f"{action.partition('?')[0]}?{urlencode(fields)}")
        if form.attributes.get("enctype") == MULTIPART:
            body, content_type = multipart(fields)
            return self._load("POST", action, body, content_type)
        return self._load("POST", action, urlencode(fields).encode())

    def fields_of(self, form: Element, button: Element | None = None) -> list[tuple[str, Value]]:
        """Return the fields that the form sends."""
        found: list[tuple[str, Value]] = []
        for one in form.all("input", "select", "textarea"):
            name, kind = one.attributes.get("name"), one.attributes.get("type", "text")
            if not name or "disabled" in one.attributes or kind in ("submit", "button") or one.within("template"):
                continue
            if kind == "file":
                if form.attributes.get("enctype") == MULTIPART:
                    found.append((name, NOTHING_CHOSEN))
                continue
            if kind in ("checkbox", "radio"):
                if "checked" in one.attributes:
                    found.append((name, one.attributes.get("value", "on")))
            elif one.tag == "select":
                options = one.all("option")
                chosen = [o for o in options if "selected" in o.attributes]
                if not chosen and "multiple" not in one.attributes:
                    chosen = options[:1]
                found += [(name, o.attributes.get("value", o.text)) for o in chosen]
            elif one.tag == "textarea":
                found.append((name, one.raw_text.removeprefix("\n")))
            else:
                found.append((name, one.attributes.get("value", "")))
        if button is not None and button.attributes.get("name"):
            found.append((button.attributes["name"], button.attributes.get("value", "")))
        return found

    # --- the wire ----------------------------------------------------------------------------------------------------

    def ask(self, method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
        """One request with this browser's cookies; cookies of the answer are kept."""
        parts = urlsplit(urljoin(self.origin, url))
        told = {"host": parts.netloc, "accept": "text/html,application/xhtml+xml", "user-agent": "Test browser"}
        if self.cookies:
            told["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if method == "POST":
            told |= {"content-type": "application/x-www-form-urlencoded", "origin": f"{parts.scheme}://{parts.netloc}"}
        reply = self.caller.ask(
            method, parts.path + (f"?{parts.query}" if parts.query else ""), body, told | self.headers | (headers or {})
        )
        for cookie in reply.cookies:
            name, _, rest = cookie.partition("=")
            value = rest.partition(";")[0]
            if "Max-Age=0" in cookie:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return reply

    def ask_together(self, method: str, path: str, *bodies: tuple[bytes, str]) -> list[Reply]:
        """The same request several times at once: body and content type of each."""

        async def all_of_them() -> list[Reply]:
            told = {"host": urlsplit(self.origin).netloc, "accept": "text/html", "origin": self.origin}
            told["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            asking = (self.caller.asking(method, path, body, {**told, "content-type": kind}) for body, kind in bodies)
            return list(await asyncio.gather(*asking))

        return self.caller.run(all_of_them())

    def _load(self, method: str, url: str, body: bytes = b"", content_type: str | None = None) -> Page:
        for _ in range(10):
            reply = self.ask(method, url, body, {"content-type": content_type} if content_type and body else None)
            if reply.status not in (301, 302, 303, 307):
                self.page = Page(reply, url)
                return self.page
            target = urljoin(url, reply.headers["location"])
            if urlsplit(target).netloc != urlsplit(self.origin).netloc:
                self.page = Page(reply, target)  # the browser leaves us
                return self.page
            method, url, body = "GET", target, b""
        raise AssertionError(f"{url} leads around in a circle")


def sign_in(browser: Tab, password: str) -> Page:
    browser.open("/login")
    return browser.press("Sign in", {"Password": password})
