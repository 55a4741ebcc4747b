"""Messages to real services on this machine: those that socialpub calls itself, and one through Apprise."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from pydantic import SecretStr

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import HOSTED, HOSTED_WITH_PATH, NotifySection
from socialpub.ops.notify import channels
from socialpub.ops.notify import send as notify_send
from socialpub.ops.notify.channels import Message, NeedsApprise
from socialpub.providers import http as provider_http
from socialpub.providers.http import Http
from tests.support.file_host import certificate
from tests.support.notify_services import HttpService, http_service, mail_server

TITLE, BODY = "socialpub: 1 delivery failed", "Needs you:\n- “Hello <b>” failed & more\n  · a second line"


@pytest.fixture
def service() -> Iterator[HttpService]:
    with http_service() as service:
        yield service


def send(url: str) -> str | None:
    http = Http()
    try:
        return notify_send.send_message(http, url, TITLE, BODY)
    finally:
        http.close()


def test_a_mail_arrives_as_plain_text_and_only_with_the_password():
    with mail_server() as (mail, port):
        address = f"127.0.0.1:{port}?from=socialpub@example.com&to=owner+alerts@example.com&mode=insecure"
        assert send(f"mailto://owner:mail-password@{address}") is None
        (letter,) = mail.taken
        assert (letter["Subject"], letter["To"]) == (TITLE, "owner+alerts@example.com")
        assert letter.get_content_type() == "text/plain"
        assert isinstance(letter, EmailMessage)
        assert letter.get_content().replace("\r\n", "\n").strip() == BODY
        assert send(f"mailto://owner:wrong-password@{address}") == "the service refuses the user name or the password"
        assert len(mail.taken) == 1
        secure = address.replace("insecure", "starttls")
        assert send(f"mailto://owner:mail-password@{secure}") == "the mail server does not offer TLS or a login"
        assert len(mail.taken) == 1, "without TLS, the password is not sent"
        assert "only ASCII" in (send(f"mailto://owner:m%C3%BCde@{address}") or "")


def test_ntfy_json_and_gotify_get_title_and_text(service):
    assert send(f"ntfy://{service.address}/owners-Topic") is None
    assert send(f"json://{service.address}/some/path") is None
    assert send(f"gotify://{service.address}/AbCdEfGhIjKlMnO") is None
    (ntfy, posted, gotify) = service.taken
    assert (ntfy[1]["topic"], ntfy[1]["title"], ntfy[1]["message"]) == ("owners-Topic", TITLE, BODY)
    assert (posted[0], posted[1]["title"], posted[1]["message"]) == ("/some/path", TITLE, BODY)
    assert (gotify[0], gotify[1]["title"], gotify[1]["message"]) == ("/message", TITLE, BODY)


def prepared(url: str) -> Any:
    """The first message, whose payload is a dictionary or a mail."""
    return channels.prepare(url, TITLE, BODY)[0]


def test_the_forms_of_ntfy():
    assert prepared("ntfy://Topic").server == prepared("ntfys://ntfy.sh/Topic").server == "https://ntfy.sh"
    assert prepared("ntfy://Topic").payload["topic"] == prepared("ntfys://ntfy.sh/Topic").payload["topic"] == "Topic"
    own = prepared("ntfys://user:p%40ss@ntfy.example.com:8443/topic")
    assert (own.server, own.login, own.token) == ("https://ntfy.example.com:8443", ("user", "p@ss"), None)
    for url in ("ntfy://tk_abc@localhost/topic", "ntfy://localhost/topic?token=tk_abc"):
        assert (prepared(url).server, prepared(url).login, prepared(url).token) == ("http://localhost", None, "tk_abc")
    assert len(channels.prepare("ntfy://localhost/one/two", TITLE, BODY)) == 2


def test_the_forms_of_telegram():
    sent = prepared("tgram://123456789:abc_DEF-hij/-1001234?topic=7")
    assert sent.server == "https://api.telegram.org/bot123456789:abc_DEF-hij/sendMessage"
    assert (sent.payload["chat_id"], sent.payload["message_thread_id"]) == ("-1001234", "7")
    assert sent.payload["text"] == f"{TITLE}\n\n{BODY}"
    assert prepared("tgram://bot123456789:abc/channel").payload["chat_id"] == "@channel"
    (long,) = channels.prepare("tgram://1:abc/2", TITLE, "ä" * 5000)
    assert isinstance(long.payload, dict)
    assert len(long.payload["text"].encode()) <= 4096


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mailto://me:secret@gmail.com", ("smtp.gmail.com", 587, "starttls", "me@gmail.com", "me@gmail.com")),
        (
            "mailtos://me%40example.com:secret@smtp.example.com?from=me@example.com&to=you+me@example.com",
            ("smtp.example.com", 587, "starttls", "me@example.com", "you+me@example.com"),
        ),
        (
            "mailtos://me:s@example.com?smtp=mail.example.com&mode=ssl",
            ("mail.example.com", 465, "ssl", "me", "me@example.com"),
        ),
        ("mailto://localhost?from=a@b.c&to=c@d.e,e@f.g", ("localhost", 25, "insecure", None, "c@d.e, e@f.g")),
    ],
)  # fmt: skip
def test_the_forms_of_mail(url, expected):
    letter: Message = prepared(url)
    user = letter.login[0] if letter.login else None
    assert isinstance(letter.payload, EmailMessage)
    assert (letter.server, letter.port, letter.mode, user, letter.payload["To"]) == expected


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("ntfy://localhost/topic?click=https://example.com", NeedsApprise),
        ("json://localhost/?:title=", NeedsApprise),
        ("tgram://123:abc/", NeedsApprise),
        ("gotify://localhost/token", NeedsApprise),
        ("tgram://token/1", ValueError),
        ("mailto://localhost", ValueError),
        ("json://localhost:port/", ValueError),
        ("json://[::1/", ValueError),
    ],
)
def test_what_socialpub_does_not_send_itself(url, error):
    with pytest.raises(error):
        channels.prepare(url, TITLE, BODY)


def test_the_cause_of_a_failure_is_a_sentence(service):
    service.status = 401
    refused = "the service refuses the user name, the password or the token (401)"
    assert send(f"json://owner:wrong@{service.address}/") == refused
    assert send(f"gotify://{service.address}/AbCdEfGhIjKlMnO") == refused
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "127.0.0.1 could not be reached" in (send(f"ntfy://127.0.0.1:{port}/topic") or "")
    assert send(f"gotify://127.0.0.1:{port}/AbCdEfGhIjKlMnO") == "the service cannot be reached or refuses the message"


def test_a_service_is_trusted_as_this_machine_trusts_it(service, tmp_path, monkeypatch):
    context, _ = certificate("localhost", tmp_path)
    service.socket = context.wrap_socket(service.socket, server_side=True)
    urls = f"jsons://localhost:{service.server_port}/", f"gotifys://localhost:{service.server_port}/AbCdEfGhIjKlMnO"
    assert "its certificate is not valid" in (send(urls[0]) or "")
    assert send(urls[1]) is not None
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "host.pem"))
    provider_http.trusted_certificates.cache_clear()
    assert [send(url) for url in urls] == [None, None]
    provider_http.trusted_certificates.cache_clear()


@pytest.mark.parametrize("url", ["json://{}/", "gotify://{}/AbCdEfGhIjKlMnO"])
def test_a_service_that_hangs_is_given_up(service, monkeypatch, url):
    service.hangs = True
    monkeypatch.setattr(channels, "SECONDS", 1.0)
    monkeypatch.setattr(notify_send, "APPRISE_SECONDS", 2)  # before the timeout of Apprise itself
    assert "in time" in (send(url.format(service.address)) or "")


def test_the_address_is_no_argument_and_no_setting_reaches_the_child(monkeypatch):
    seen: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> Any:
        seen.update(options, command=command)
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("SOCIALPUB_SECRET", "hidden")
    assert send("gotify://localhost/AbCdEfGhIjKlMnO") is None
    assert "AbCdEf" not in " ".join(seen["command"])
    assert "hidden" not in " ".join(seen["env"].values())
    assert "AbCdEf" in seen["env"]["APPRISE_URLS"]


def test_without_apprise_an_address_of_another_service_is_refused_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(notify_send, "find_spec", lambda name: None)
    fault = notify_send.find_fault("gotify://localhost/AbCdEfGhIjKlMnO")
    assert fault is not None
    assert "pip install 'socialpub[notify]'" in fault
    assert notify_send.find_fault("ntfy://topic") is None
    assert send("gotify://localhost/AbCdEfGhIjKlMnO") == fault


def test_addresses_that_cannot_be_used_are_refused_by_number_and_service():
    urls = ["ntfy://topic", "nosuch://owner:hidden-password@host", "tgram://hidden-token/1", "gotify://"]
    with pytest.raises(OperatorError) as refused:
        notify_send.refuse_wrong_addresses(Settings(notify=NotifySection.model_validate({"urls": urls[:3]})))
    message = refused.value.message
    assert "number 2, nosuch://, is not the complete address of a service that Apprise supports" in message
    assert "number 3, tgram://, is not complete" in message
    assert "ntfy" not in message
    assert "hidden" not in message
    assert refused.value.hint


HOSTS = """
import json, re
from apprise.manager_plugins import NotificationManager
found = {}
for plugin in NotificationManager().plugins(include_disabled=True):
    schemes = {one for name in ("protocol", "secure_protocol") if (value := getattr(plugin, name, None))
               for one in ([value] if isinstance(value, str) else value)}
    places = {re.split(r"[/?]|:\\{port", address.partition("://")[2])[0].rpartition("@")[2]
              for address in getattr(plugin, "templates", ())}
    found |= dict.fromkeys(schemes, sorted(places))
print(json.dumps(found))
"""


def test_a_name_shows_a_host_only_where_apprise_has_one():
    asked = subprocess.run([sys.executable, "-W", "ignore", "-c", HOSTS], capture_output=True, text=True, check=True)
    places: dict[str, list[str]] = json.loads(asked.stdout)
    assert len(places) > 100
    for scheme in HOSTED & set(places):
        assert all(re.fullmatch(r"\{host\}(\{path\}.*)?", place) for place in places[scheme]), (scheme, places[scheme])
    for scheme in HOSTED_WITH_PATH:
        assert "{host}" in places[scheme]


def test_without_other_services_no_process_is_started(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    urls = [SecretStr("ntfy://topic"), SecretStr("mailto://me:secret@gmail.com")]
    notify_send.refuse_wrong_addresses(Settings(notify=NotifySection.model_validate({"urls": urls})))


def test_neither_web_server_nor_worker_imports_apprise():
    """Apprise takes as much memory as these processes."""
    code = (
        "import sys, socialpub.worker.process, socialpub.web.http.server, socialpub.cli.run\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('apprise', 'requests')])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert answer.stdout.strip() == "[]"
