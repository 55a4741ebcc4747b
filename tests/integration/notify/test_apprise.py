"""The real Apprise, in its own process, sends to services on this machine."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import HOSTED, HOSTED_WITH_PATH, NotifySection
from socialpub.ops.notify import send as notify_send
from socialpub.ops.notify.send import SendingStopped
from tests.support.file_host import certificate
from tests.support.notify_services import HttpService, http_service, mail_server

TITLE, BODY = "socialpub: 1 delivery failed", "Needs you:\n- “Hello <b>” failed & more\n  · a second line"


@pytest.fixture
def service() -> Iterator[HttpService]:
    with http_service() as service:
        yield service


def send(url: str, **more: float) -> str | None:
    return notify_send.send_message(SecretStr(url), TITLE, BODY, **more)


def test_a_mail_arrives_as_plain_text_and_only_with_the_password() -> None:
    with mail_server() as (mail, port):
        address = f"127.0.0.1:{port}?from=socialpub@example.com&to=owner@example.com&mode=insecure"
        assert send(f"mailto://owner:mail-password@{address}") is None
        (letter,) = mail.taken
        assert (letter["Subject"], letter["To"]) == (TITLE, "owner@example.com")
        assert letter.get_content_type() == "text/plain"
        assert letter.get_content().replace("\r\n", "\n").strip() == BODY
        assert send(f"mailto://owner:wrong-password@{address}") == "the service refuses the user name or the password"
        assert len(mail.taken) == 1


def test_ntfy_and_gotify_get_title_and_text(service: HttpService) -> None:
    assert send(f"ntfy://{service.address}/owners-topic") is None
    assert send(f"gotify://{service.address}/AbCdEfGhIjKlMnO") is None
    (ntfy, gotify) = service.taken
    assert (ntfy[1]["topic"], ntfy[1]["title"], ntfy[1]["message"]) == ("owners-topic", TITLE, BODY)
    assert (gotify[0], gotify[1]["title"], gotify[1]["message"]) == ("/message", TITLE, BODY)


def test_the_cause_of_a_failure_is_a_sentence(service: HttpService) -> None:
    service.status = 401
    refused = send(f"json://owner:wrong@{service.address}/")
    assert refused == "the service refuses the user name, the password or the token (401)"
    port = service.server_port
    service.server_close()
    assert send(f"ntfy://127.0.0.1:{port}/topic") == "nothing listens at the address"


def test_a_service_is_trusted_as_this_machine_trusts_it(
    service: HttpService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, _ = certificate("localhost", tmp_path)
    service.socket = context.wrap_socket(service.socket, server_side=True)
    address = f"jsons://localhost:{service.server_port}/"
    assert send(address) == "the certificate is invalid for the host name, or not signed by a trusted authority"
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "host.pem"))
    assert send(address) is None


def test_a_service_that_hangs_is_given_up(service: HttpService) -> None:
    service.hangs = True
    assert send(f"json://{service.address}/", seconds=2.0) == "the service does not respond in time"


def test_a_stop_waits_a_few_seconds_for_a_service(service: HttpService) -> None:
    service.hangs = True
    stopping = threading.Event()
    threading.Thread(target=lambda: (service.asked.wait(), stopping.set())).start()
    with pytest.raises(SendingStopped):
        notify_send.send_message(SecretStr(f"json://{service.address}/"), TITLE, BODY, stopping=stopping, seconds=600.0)


def test_the_child_ends_with_its_parent(service: HttpService) -> None:
    service.hangs = True
    asks = (
        "from pydantic import SecretStr\nfrom socialpub.ops.notify import send\n"
        f"send.send_message(SecretStr('json://{service.address}/'), 'title', 'body', seconds=600.0)"
    )
    asking = subprocess.Popen([sys.executable, "-c", asks])
    assert service.asked.wait(60)
    children = [int(pid) for pid in Path(f"/proc/{asking.pid}/task/{asking.pid}/children").read_text().split()]
    assert len(children) == 1
    arguments = Path(f"/proc/{children[0]}/cmdline").read_text()
    assert service.address not in arguments, "everybody can read the arguments of a process"
    asking.kill()
    asking.wait()
    until = time.monotonic() + 60
    while is_running(children[0]):
        assert time.monotonic() < until
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_addresses_that_cannot_be_used_are_refused_by_number_and_service() -> None:
    urls = ["ntfy://topic", "mailto://", "nosuch://owner:hidden-password@host", "tgram://hidden-token/1"]
    with pytest.raises(OperatorError) as refused:
        notify_send.refuse_wrong_addresses(
            Settings(notify=NotifySection.model_validate({"urls": [*urls[:1], *urls[2:]]}))
        )
    message = refused.value.message
    assert "number 2, nosuch://, is not the address of a service that Apprise supports" in message
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


def test_a_name_shows_a_host_only_where_apprise_has_one() -> None:
    asked = subprocess.run([sys.executable, "-W", "ignore", "-c", HOSTS], capture_output=True, text=True, check=True)
    places: dict[str, list[str]] = json.loads(asked.stdout)
    assert len(places) > 100
    for scheme in HOSTED & set(places):
        assert all(re.fullmatch(r"\{host\}(\{path\}.*)?", place) for place in places[scheme]), (scheme, places[scheme])
    for scheme in HOSTED_WITH_PATH:
        assert "{host}" in places[scheme]


def test_without_addresses_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    notify_send.refuse_wrong_addresses(Settings())


def test_neither_web_server_nor_worker_imports_apprise() -> None:
    """Apprise takes as much memory as these processes."""
    code = (
        "import sys, socialpub.worker.process, socialpub.web.http.server, socialpub.cli.run\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('apprise', 'requests')])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert answer.stdout.strip() == "[]"
