"""The services that socialpub calls itself: e-mail, ntfy, Telegram and a JSON POST.

Their URLs have the forms of Apprise (https://appriseit.com/services/), without its rare options.
"""

import smtplib
from email.message import EmailMessage
from email.utils import formataddr, formatdate, make_msgid, parseaddr
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

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


class Message(NamedTuple):
    """A request with a JSON `payload`, or an e-mail."""

    server: str
    payload: dict[str, Any] | EmailMessage
    login: tuple[str, str] | None = None
    token: str | None = None
    port: int = 0
    mode: str = ""


def send(http: Http, messages: list[Message]) -> str | None:
    """Send the messages. Return None, or the reason for the failure as a clause. Blocks."""
    for item in messages:
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
            return _describe_error(error)
        if not 200 <= response.status < 300:
            return describe_status(response.status)
    return None


def prepare(url: str, title: str, body: str) -> list[Message]:
    """Return what is sent to this URL. Raises NeedsApprise, and ValueError for a URL that lacks a part."""
    parts = urlsplit(url)
    scheme = parts.scheme.removesuffix("s")
    options = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))  # a plus sign is no space here
    if scheme not in OPTIONS or parts.fragment or options.keys() - OPTIONS[scheme]:
        raise NeedsApprise
    host = parts.netloc.rpartition("@")[2]  # with its port, and as it is written: a topic may have capital letters
    targets = [unquote(part) for part in parts.path.split("/") if part]
    if not host:
        raise ValueError("no host")
    if scheme == "tgram":
        return _prepare_telegram(unquote(host), targets, options.get("topic"), _cut(f"{title}\n\n{body}"))
    if scheme == "mailto":
        return [_prepare_mail(parts, targets, options, title, body)]
    if parts.port == 0:  # a port that is not a number raises
        raise ValueError("no port")
    user = unquote(parts.username or "")
    login = (user, unquote(parts.password or "")) if user else None
    server = f"http{'s' if parts.scheme.endswith('s') else ''}://{host}"
    if scheme == "json":
        payload = {"version": "1.0", "title": title, "message": body, "type": "info"}
        return [Message(f"{server}{parts.path or '/'}", payload, login)]
    token = options.get("token", user if user.startswith("tk_") else None)
    base, topics = (server, targets) if targets else ("https://ntfy.sh", [unquote(host)])
    payload = {"title": title, "message": _cut(body)}
    return [Message(base, {"topic": topic, **payload}, None if token else login, token) for topic in topics]


def _prepare_telegram(place: str, chats: list[str], topic: str | None, text: str) -> list[Message]:
    bot, _, secret = place.removeprefix("bot").partition(":")
    if not (bot.isdecimal() and secret):
        raise ValueError("no token")
    if not chats or any(":" in chat for chat in chats):
        raise NeedsApprise  # which asks Telegram for the chat of the bot's owner, or knows topics of chats
    payload: dict[str, Any] = {"text": text, "disable_web_page_preview": True}
    payload |= {} if topic is None else {"message_thread_id": topic}
    chats = [chat if chat[0] == "@" or chat.lstrip("-").isdecimal() else f"@{chat}" for chat in chats]
    server = f"https://api.telegram.org/bot{bot}:{secret}/sendMessage"
    return [Message(server, {"chat_id": chat, **payload}) for chat in chats]


def _cut(text: str) -> str:
    return text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")


def _prepare_mail(url: SplitResult, targets: list[str], options: dict[str, str], title: str, body: str) -> Message:
    host, user, password = url.hostname or "", unquote(url.username or ""), unquote(url.password or "")
    webmail = None if "smtp" in options else MAIL_SERVERS.get(host)
    address = user if "@" in user else f"{user}@{host}"
    name, sender = parseaddr(options.get("from", address))
    mode = options.get("mode", "starttls" if url.scheme == "mailtos" or webmail else "insecure")
    if mode not in PORTS or sender.startswith("@"):
        raise ValueError("no sender")
    mail = EmailMessage()
    mail["Subject"] = " ".join(title.split())
    mail["From"] = formataddr((name or "socialpub", sender))
    mail["To"] = ", ".join([*targets, *options.get("to", "").replace(",", " ").split()] or [sender])
    mail["Date"] = formatdate(localtime=True)
    mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    mail.set_content(body)
    login = (address if webmail else user, password) if password else None
    server = options.get("smtp") or webmail or host
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


def _describe_error(error: OSError | UnicodeError) -> str:
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
