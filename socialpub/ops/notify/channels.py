"""The services that socialpub calls itself: e-mail, ntfy, Telegram and a JSON POST.

Their URLs have the forms of Apprise (https://appriseit.com/services/), without its rare options.
"""

import smtplib
from email.message import EmailMessage
from email.utils import formataddr, formatdate, make_msgid, parseaddr
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from socialpub.providers.failures import describe_failure
from socialpub.providers.http import Http, trusted_certificates
from socialpub.providers.responses import ProviderError

OPTIONS = {"mailto": {"from", "to", "smtp", "mode"}, "ntfy": {"token"}, "tgram": {"topic"}, "json": set[str]()}
"""The options of each scheme. `mailtos`, `ntfys` and `jsons` use TLS."""
SECONDS = 20.0
MAX_TEXT_BYTES = 4000
"""ntfy and Telegram accept a little more (4,096)."""
PORTS = {"insecure": 25, "starttls": 587, "ssl": 465}
MAIL_SERVERS = {"gmail.com": "smtp.gmail.com", "gmx.net": "mail.gmx.net", "yahoo.com": "smtp.mail.yahoo.com"}
"""The servers of providers whose users sign in with their address, as in `mailto://USER:PASSWORD@gmail.com`."""


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
    path: str
    targets: list[str]
    options: dict[str, str]


class Message(NamedTuple):
    """A request with a JSON `payload`, or an e-mail."""

    server: str
    payload: dict[str, Any] | EmailMessage
    login: tuple[str, str] | None = None
    token: str | None = None
    port: int = 0
    mode: str = ""


def send(http: Http, url: str, title: str, body: str) -> str | None:
    """Send a message. Return None, or the reason for the failure as a clause. Blocks.

    Raises NeedsApprise, and ValueError for a URL that lacks a part.
    """
    for item in prepare(url, title, body):
        try:
            if isinstance(item.payload, EmailMessage):
                _send_mail(item, item.payload)
                continue
            response = http.call(
                "POST", item.server, json=item.payload, token=item.token, auth=item.login, deadline_seconds=SECONDS
            )
        except ProviderError as error:
            return error.message.removesuffix(".")
        except (OSError, UnicodeError) as error:
            return describe_error(error)
        if not 200 <= response.status < 300:
            return describe_status(response.status)
    return None


def prepare(text: str, title: str, body: str) -> list[Message]:
    """Return what is sent to the URL in `text`. Raises NeedsApprise, and ValueError for a URL that lacks a part."""
    url = _parse(text)
    server = f"http{'s' * url.is_secure}://{url.host}{f':{url.port}' if url.port else ''}"
    login = (url.user, url.password) if url.user else None
    if url.scheme == "mailto":
        return [_prepare_mail(url, title, body)]
    if url.scheme == "ntfy":
        token = url.options.get("token", url.user if url.user.startswith("tk_") else None)
        payload = {"title": title, "message": _cut(body)}
        base, topics = (server, url.targets) if url.targets else ("https://ntfy.sh", [url.host])
        return [Message(base, {"topic": topic, **payload}, None if token else login, token) for topic in topics]
    if url.scheme == "tgram":
        return _prepare_telegram(url, {"text": _cut(f"{title}\n\n{body}"), "disable_web_page_preview": True})
    payload = {"version": "1.0", "title": title, "message": body, "type": "info"}
    return [Message(f"{server}{url.path or '/'}", payload, login)]


def _parse(text: str) -> Url:
    parts = urlsplit(text)
    scheme = parts.scheme.removesuffix("s")
    options = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))  # a plus sign is no space here
    if scheme not in OPTIONS or parts.fragment or options.keys() - OPTIONS[scheme]:
        raise NeedsApprise
    port = None if scheme == "tgram" else parts.port
    host = unquote(parts.netloc.rpartition("@")[2].removesuffix(f":{port}"))
    if not host:
        raise ValueError("no host")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    targets = [unquote(part) for part in parts.path.split("/") if part]
    return Url(scheme, parts.scheme.endswith("s"), host, port, user, password, parts.path, targets, options)


def _prepare_telegram(url: Url, payload: dict[str, Any]) -> list[Message]:
    bot, _, secret = url.host.removeprefix("bot").partition(":")
    if not (bot.isdecimal() and secret):
        raise ValueError("no token")
    if not url.targets or any(":" in chat for chat in url.targets):
        raise NeedsApprise  # which asks Telegram for the chat of the bot's owner, or knows topics of chats
    if "topic" in url.options:
        payload["message_thread_id"] = url.options["topic"]
    chats = [chat if chat[0] == "@" or chat.lstrip("-").isdecimal() else f"@{chat}" for chat in url.targets]
    address = f"https://api.telegram.org/bot{bot}:{secret}/sendMessage"
    return [Message(address, {"chat_id": chat, **payload}) for chat in chats]


def _cut(text: str) -> str:
    return text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")


def _prepare_mail(url: Url, title: str, body: str) -> Message:
    webmail = None if "smtp" in url.options else MAIL_SERVERS.get(url.host)
    address = url.user if "@" in url.user else f"{url.user}@{url.host}"
    name, sender = parseaddr(url.options.get("from", address))
    recipients = [*url.targets, *url.options.get("to", "").replace(",", " ").split()] or [sender]
    mode = url.options.get("mode", "starttls" if url.is_secure or webmail else "insecure")
    if mode not in PORTS or sender.startswith("@"):
        raise ValueError("no sender")
    mail = EmailMessage()
    mail["Subject"] = " ".join(title.split())
    mail["From"] = formataddr((name or "socialpub", sender))
    mail["To"] = ", ".join(recipients)
    mail["Date"] = formatdate(localtime=True)
    mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    mail.set_content(body)
    login = (address if webmail else url.user, url.password) if url.password else None
    server = url.options.get("smtp") or webmail or url.host
    return Message(server, mail, login, port=url.port or PORTS[mode], mode=mode)


def _send_mail(message: Message, mail: EmailMessage) -> None:
    secure = trusted_certificates()
    connect = partial(smtplib.SMTP_SSL, context=secure) if message.mode == "ssl" else smtplib.SMTP
    with connect(message.server, message.port, timeout=SECONDS) as server:
        if message.mode == "starttls":
            server.starttls(context=secure)
        if message.login:
            server.login(*message.login)
        server.send_message(mail)


def describe_error(error: BaseException) -> str:
    match error:
        case smtplib.SMTPAuthenticationError():
            return "the service refuses the user name or the password"
        case smtplib.SMTPRecipientsRefused():
            return "the service refuses the recipient"
        case smtplib.SMTPNotSupportedError():
            return "the mail server does not offer TLS or a login"
        case smtplib.SMTPResponseException():
            return describe_status(error.smtp_code)
        case UnicodeError():
            return "the mail server accepts only ASCII characters in the user name, the password and the addresses"
        case TimeoutError():
            return "the service does not respond in time"
    return describe_failure(error)


def describe_status(status: int) -> str:
    if status in (401, 403):
        return f"the service refuses the user name, the password or the token ({status})"
    return f"the service responded with status {status}"
