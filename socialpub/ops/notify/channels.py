"""The services that socialpub calls itself: e-mail, ntfy, Telegram and a JSON POST.

Their URLs have the forms of Apprise (https://appriseit.com/services/), without its rare options.
"""

import smtplib
from email.message import EmailMessage
from email.utils import formataddr, formatdate, make_msgid, parseaddr
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from socialpub.providers.failures import describe_failure
from socialpub.providers.http import Http, trusted_certificates
from socialpub.providers.responses import ProviderError

OPTIONS = {
    "mailto": {"from", "to", "name", "smtp", "mode"},
    "ntfy": {"to", "token", "auth", "mode"},
    "tgram": {"to", "topic", "thread"},
    "json": set[str](),
}
"""The options of each scheme. `mailtos`, `ntfys` and `jsons` use TLS."""
SECONDS = 20.0
MAX_TEXT_BYTES = 4000
"""ntfy and Telegram accept a little more (4,096)."""


class Incomplete(Exception):
    """A URL lacks a necessary part."""


class NeedsApprise(Exception):
    """Only Apprise can send to this URL."""


class Url(NamedTuple):
    scheme: str
    is_secure: bool
    host: str
    """As it is written: a topic of ntfy may have capital letters."""
    port: int | None
    user: str
    password: str
    login: tuple[str, str] | None
    path: str
    options: dict[str, str]
    targets: list[str]
    """The parts of the path, and of the option `to`."""

    @property
    def web(self) -> str:
        return f"http{'s' * self.is_secure}://{self.host}{f':{self.port}' if self.port else ''}"


class Post(NamedTuple):
    url: str
    payload: dict[str, Any]
    token: str | None = None
    login: tuple[str, str] | None = None


class Letter(NamedTuple):
    server: str
    port: int
    mode: str
    login: tuple[str, str] | None
    message: EmailMessage


def send(http: Http, url: str, title: str, body: str) -> str | None:
    """Send a message to the URL. Return None, or the reason for the failure as a clause. Blocks.

    Raises Incomplete and NeedsApprise.
    """
    prepared = prepare(url, title, body)
    if isinstance(prepared, Letter):
        return _send_letter(prepared)
    for address, payload, token, login in prepared:
        try:
            response = http.call("POST", address, json=payload, token=token, auth=login, deadline_seconds=SECONDS)
        except ProviderError as error:
            return error.message.removesuffix(".")
        if not 200 <= response.status < 300:
            return describe_status(response.status)
    return None


def prepare(text: str, title: str, body: str) -> Letter | list[Post]:
    """Return what is sent to the URL in `text`. Raises Incomplete and NeedsApprise."""
    try:
        url = _parse(text)
        if url.scheme == "mailto":
            return _letter(url, title, body)
    except ValueError:  # an invalid port, or a line break in a header
        raise Incomplete from None
    if url.scheme == "ntfy":
        return _ntfy(url, {"title": title, "message": _cut(body)})
    if url.scheme == "tgram":
        return _telegram(url, {"text": _cut(f"{title}\n\n{body}"), "disable_web_page_preview": True})
    payload = {"version": "1.0", "title": title, "message": body, "attachments": [], "type": "info"}
    return [Post(f"{url.web}{url.path or '/'}", payload, login=url.login)]


def _parse(text: str) -> Url:
    parts = urlsplit(text)
    scheme = parts.scheme.lower()
    is_secure = scheme.endswith("s")
    scheme = scheme.removesuffix("s")
    pairs = (option.partition("=") for option in parts.query.split("&") if option)
    options = {name.lower(): unquote(value) for name, _, value in pairs}  # a plus sign is no space here
    if scheme not in OPTIONS or parts.fragment or options.keys() - OPTIONS[scheme]:
        raise NeedsApprise
    port = None if scheme == "tgram" else parts.port
    host = unquote(parts.netloc.rpartition("@")[2].removesuffix(f":{port}"))
    if not host:
        raise Incomplete
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    targets = [*map(unquote, parts.path.split("/")), *options.get("to", "").replace(",", " ").split()]
    login = (user, password) if user else None
    return Url(scheme, is_secure, host, port, user, password, login, parts.path, options, list(filter(None, targets)))


def _ntfy(url: Url, payload: dict[str, Any]) -> list[Post]:
    options, topics = url.options, url.targets
    if options.get("mode", "private" if topics else "cloud") == "cloud":
        topics = topics if url.host == "ntfy.sh" else [url.host, *topics]
        return [Post("https://ntfy.sh", {"topic": topic, **payload}) for topic in topics]
    token = options.get("token")
    if options.get("auth") == "token" or (url.user.startswith("tk_") and not url.password):
        token = token or url.password or url.user
    login = None if token else url.login
    return [Post(url.web, {"topic": topic, **payload}, token, login) for topic in topics]


def _telegram(url: Url, payload: dict[str, Any]) -> list[Post]:
    bot, _, secret = url.host.removeprefix("bot").partition(":")
    if not (bot.isdecimal() and secret):
        raise Incomplete
    if not url.targets or any(":" in chat for chat in url.targets):
        raise NeedsApprise  # which asks Telegram for the chat of the bot's owner, or knows topics of chats
    if topic := url.options.get("topic") or url.options.get("thread"):
        payload["message_thread_id"] = topic
    address = f"https://api.telegram.org/bot{bot}:{secret}/sendMessage"
    chats = [chat if chat[0] == "@" or chat.lstrip("-").isdecimal() else f"@{chat}" for chat in url.targets]
    return [Post(address, {"chat_id": chat, **payload}) for chat in chats]


def _cut(text: str) -> str:
    encoded = text.encode()
    return text if len(encoded) <= MAX_TEXT_BYTES else f"{encoded[:MAX_TEXT_BYTES].decode(errors='ignore')}…"


# --- e-mail ----------------------------------------------------------------------------------------------------------

PORTS = {"insecure": 25, "starttls": 587, "ssl": 465}
PROVIDERS = (
    ("gmail.com", "smtp.gmail.com", "starttls"),
    ("hotmail.com hotmail.com.au live.com live.com.au", "smtp-mail.outlook.com", "starttls"),
    ("outlook.com outlook.com.au", "smtp.outlook.com", "starttls"),
    ("yahoo.com yahoo.ca", "smtp.mail.yahoo.com", "ssl"),
    ("gmx.com gmx.net gmx.de gmx.at gmx.ch gmx.fr", "mail.gmx.com", "starttls"),
    ("fastmail.com fastmail.fm", "smtp.fastmail.com", "ssl"),
    ("zoho.com zohomail.com", "smtp.zoho.com", "starttls"),
)
"""The mail servers of providers whose users sign in with their address, as in `mailto://USER:PASSWORD@gmail.com`."""
OTHERS = ("office365.com", "sendgrid.com", "sendgrid.net", "163.com", "foxmail.com", "qq.com", "comcast.net")
"""Providers with other rules, which Apprise knows, like those of yandex and fastmail."""


def _letter(url: Url, title: str, body: str) -> Letter:
    user, domain, options = url.user, url.host.lower(), url.options
    server, mode = options.get("smtp"), options.get("mode", "").lower()
    for domains, address, usual_mode in () if server else PROVIDERS:
        if domain in domains.split():
            server, mode = address, mode or usual_mode
            user = user if "@" in user else f"{user}@{domain}"
            domain = user.partition("@")[2]
    if server is None and (domain.startswith(("yandex.", "fastmail.")) or domain.endswith(OTHERS)):
        raise NeedsApprise
    mode = mode or ("starttls" if url.is_secure else "insecure")
    name, sender = parseaddr(options.get("from", ""))
    if "@" not in sender:  # without an address, `from` is a name
        name, sender = options.get("from", ""), f"{user.partition('@')[0]}@{domain}"
    if mode not in PORTS or sender.startswith("@"):
        raise Incomplete
    message = EmailMessage()
    message["Subject"] = " ".join(title.split())
    message["From"] = formataddr((options.get("name") or name or "socialpub", sender))
    message["To"] = ", ".join(url.targets or [sender])
    message["Date"] = formatdate(localtime=True)
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    message.set_content(body)
    login = (user, url.password) if user and url.password else None
    return Letter(server or domain, url.port or PORTS[mode], mode, login, message)


def _send_letter(letter: Letter) -> str | None:
    context = trusted_certificates()
    try:
        if letter.mode == "ssl":
            server: smtplib.SMTP = smtplib.SMTP_SSL(letter.server, letter.port, timeout=SECONDS, context=context)
        else:
            server = smtplib.SMTP(letter.server, letter.port, timeout=SECONDS)
        with server:
            if letter.mode == "starttls":
                server.starttls(context=context)
            if letter.login:
                server.login(*letter.login)
            server.send_message(letter.message)
    except (OSError, UnicodeError) as error:
        return describe_error(error)
    return None


# --- failures --------------------------------------------------------------------------------------------------------

_FAULTS: tuple[tuple[type[BaseException], str], ...] = (
    (smtplib.SMTPAuthenticationError, "the service refuses the user name or the password"),
    (smtplib.SMTPRecipientsRefused, "the service refuses the recipient"),
    (smtplib.SMTPSenderRefused, "the service refuses the sender"),
    (smtplib.SMTPNotSupportedError, "the mail server does not offer TLS or a login"),
    (smtplib.SMTPServerDisconnected, "the service closed the connection before it responded"),
    (UnicodeError, "the mail server accepts only ASCII characters in the user name, the password and the addresses"),
    (TimeoutError, "the service does not respond in time"),
)
_STATUSES = {
    401: "the service refuses the user name, the password or the token (401)",
    403: "the user name, the password or the token does not have permission (403)",
    404: "the service does not know the topic, the chat or the token (404)",
    413: "the message is too large for the service (413)",
    429: "the service does not currently accept messages (429)",
}


def describe_error(error: BaseException) -> str:
    for kind, words in _FAULTS:
        if isinstance(error, kind):
            return words
    if isinstance(error, smtplib.SMTPResponseException):
        return describe_status(error.smtp_code)
    return describe_failure(error)


def describe_status(status: int) -> str:
    return _STATUSES.get(status, f"the service responded with status {status}")
