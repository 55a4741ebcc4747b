"""A network that quotes every secret that it received: no secret is stored or shown."""

import contextvars
import io
import json
import logging as std_logging
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import httpx2
import pytest
from click.testing import CliRunner

from socialpub.accounts import boards, connect, consents, profiles, tokens, upkeep
from socialpub.accounts.tokens import Credentials
from socialpub.cli.context import CommandContext
from socialpub.cli.main import main
from socialpub.core import logging
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import redaction
from socialpub.core.settings.networks import AppSection
from socialpub.core.settings.schema import LoggingSection
from socialpub.providers.responses import ProviderError
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact, http_over, providers_of_the_sandbox
from tests.support.select import select_value

ACCESS = 'act.hush"Acc/ess+1!5678=='
REFRESH = "rft.hush-Refresh/token+2!9876"
CODE, SECRET = "hushCode1/2+3*v!4567.e1", "hush-client-secret-0123456789"
METRICS = "hush-metrics"
OPTIONS = {
    "x": {},
    "tiktok": {"tiktok": {"privacyLevel": "SELF_ONLY"}},
    "pinterest": {"pinterest": {"boardId": "5001"}},
}
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in a URL": lambda text: quote(text, safe=""),
    "in a URL, lower case": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    "in JSON": lambda text: json.dumps({"got": text}),
    "in JSON, slashes escaped": lambda text: json.dumps({"got": text}).replace("/", "\\/"),
    "in JSON in JSON": lambda text: json.dumps(json.dumps({"got": text})),
    "behind many words": lambda text: "word " * 35 + text,
}


class EchoTransport(httpx2.AsyncBaseTransport):
    """Responds with `status`, and quotes the caller's secrets in every field of `form`."""

    def __init__(self) -> None:
        self.status, self.form, self.code, self.trace = 403, FORMS["plain"], "x", ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = b"".join([piece async for piece in request.stream])  # type: ignore[union-attr]
        sent = [value for _, value in parse_qsl(body.decode("latin-1")) if "hush" in value]
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if scheme == "Bearer":
            sent += [credentials, REFRESH]  # also known to the network
        elif scheme == "Basic":
            sent += [credentials, SECRET]
        words = " ".join(self.form(text) for text in dict.fromkeys(sent))
        self.trace = sent[0] if sent else "trace-1"
        if self.status == 200:
            answer = self._agrees(request.url.path, words)
        else:
            answer = self._refuses(request.url.path, words)
        # The allowed characters of a header.
        headers = dict.fromkeys(("x-request-id", "x-transaction-id", "x-pinterest-rid"), self.trace)
        return httpx2.Response(self.status, json=answer, headers=headers)

    def _refuses(self, path: str, words: str) -> dict[str, Any]:
        if "oauth" in path:
            return {"error": self.code, "error_description": words, "log_id": self.trace, "code": 3, "message": words}
        if "/tiktok/" in path:
            return {"error": {"code": f"code {self.trace}", "message": words, "log_id": self.trace}, "data": {}}
        if "/pinterest/" in path:
            return {"code": 29, "message": words}
        return {"title": words, "detail": words, "type": "about:blank", "status": self.status}

    def _agrees(self, path: str, words: str) -> dict[str, Any]:
        account = {"id": "7", "open_id": "7", "username": words[:60], "name": words[:60], "display_name": words[:60]}
        error = {"error": {"code": "ok", "message": words, "log_id": self.trace}}
        board = {"id": "5001", "name": words, "privacy": "PUBLIC"}
        images = {"profile_image_url": f"https://p.test/{words}", "avatar_url": f"https://p.test/{words}"}
        user = {**account, **images, "profile_image": f"https://p.test/{words}", "account_type": "BUSINESS"}
        return {**user, **error, "data": {**user, "user": user}, "items": [board], "bookmark": None}


@pytest.fixture
def echo() -> EchoTransport:
    return EchoTransport()


@pytest.fixture
def appliance_options(echo: EchoTransport) -> dict[str, Any]:
    networks = providers_of_the_sandbox()
    for _, section in networks:
        if isinstance(section, AppSection):
            section.__dict__["client_secret"] = type(section.client_secret)(SECRET)
    return {"http": http_over(echo), "networks": networks, "metrics": {"token": METRICS}}


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock, appliance_options: dict[str, Any]) -> Iterator[Runtime]:
    rt = open_appliance(tmp_path, clock, **appliance_options)
    yield rt
    rt.close()


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    loggers = [std_logging.getLogger(name) for name in ("", logging.LOGGER)]
    before = [(one, one.level, one.handlers[:]) for one in loggers]
    stream = io.StringIO()
    logging.configure(LoggingSection(level="debug"), stream)
    yield stream
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers[:] = handlers


def quoted(text: str) -> list[str]:
    return re.findall(r".{0,20}hush.{0,20}", text)


def kept(rt: Runtime) -> str:
    with closing(sqlite3.connect(rt.settings.database_file)) as database:
        return "\n".join(database.iterdump())


def apart(work: Callable[..., object], *arguments: object, **more: object) -> Any:
    return contextvars.Context().run(work, *arguments, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "form"), [*((403, form) for form in FORMS), *((status, "plain") for status in (400, 401, 404, 429, 500))]
)
@pytest.mark.parametrize("provider", ["x", "tiktok", "pinterest"])
def test_a_post(
    rt: Runtime, echo: EchoTransport, clock: HandClock, lines: io.StringIO, tmp_path: Path, provider: str,
    status: int, form: str,
) -> None:  # fmt: skip
    echo.status, echo.form = status, FORMS[form]
    profile = add_profile(rt, provider, tokens=(ACCESS, REFRESH))
    items: tuple[DraftMedia, ...] = ()
    if provider != "x":
        items = (DraftMedia(artifact(rt, media.png(tmp_path / "a.png"), "image/png")),)
    post = accept(rt, profile, media=items, options=OPTIONS[provider])
    apart(drain, rt, clock, within=3600.0)
    assert select_value(rt.db, "SELECT count(*) FROM attempt") > 0
    assert quoted(kept(rt)) == []
    assert quoted(lines.getvalue()) == []
    context = CommandContext(config=tmp_path / "none.toml")
    context.settings = lambda: rt.settings  # type: ignore[method-assign]
    for arguments in (["admin", "show-post", post], ["admin", "show-post", post, "--json"], ["admin", "list-profiles"]):
        shown = CliRunner().invoke(main, arguments, obj=context, catch_exceptions=False)
        assert shown.exit_code == 0
        assert quoted(shown.output) == []


@pytest.mark.parametrize(
    ("code", "form"),
    [
        *(("unheard_of", form) for form in FORMS),
        *((code, "plain") for code in ("invalid_grant", "invalid_client", "server_error")),
    ],
)
@pytest.mark.parametrize("provider", ["x", "tiktok", "pinterest"])
def test_tokens_are_masked_at_exchange_refresh_and_revocation(
    rt: Runtime, echo: EchoTransport, clock: HandClock, lines: io.StringIO, provider: str, code: str, form: str
) -> None:
    echo.status, echo.form, echo.code = 400, FORMS[form], code
    profile = add_profile(rt, provider, tokens=(ACCESS, REFRESH))
    begun, url = consents.begin(rt, provider)
    state = dict(parse_qsl(url.partition("?")[2]))["state"]
    said = [
        apart(_failure, consents.finish, rt, provider, {"state": state, "code": CODE}),
        apart(_failure, connect.import_account, rt, provider, Credentials(ACCESS, REFRESH)),
        apart(_failure, tokens.renew, rt, profile),
        repr(consents.load_outcome(rt, begun.id)),
    ]
    clock.forward(100 * 86400)
    apart(upkeep.renew_idle_tokens, rt, ())
    said.append(str(upkeep.describe_warning(profiles.get(rt.db, profile), rt.now())))
    rt.write(profiles.disconnect, profile)
    apart(upkeep.revoke_disconnected, rt)
    assert quoted(" ".join(said)) == []
    assert quoted(lines.getvalue()) == []
    assert quoted(kept(rt)) == []


def _failure(work: Callable[..., object], *arguments: object) -> str:
    with pytest.raises((OperatorError, ProviderError)) as failure:
        work(*arguments)
    return f"{failure.value} {vars(failure.value)}"


@pytest.mark.parametrize("provider", ["x", "tiktok", "pinterest"])
def test_an_account_and_its_boards(rt: Runtime, echo: EchoTransport, lines: io.StringIO, provider: str) -> None:
    echo.status = 200
    made = apart(connect.import_account, rt, provider, Credentials(ACCESS, REFRESH))
    if provider == "pinterest":
        assert quoted(repr(apart(boards.list_boards, rt, made.profile_id))) == []
    assert quoted(kept(rt)) == []
    assert quoted(lines.getvalue()) == []


def test_the_apps_own_secrets_are_masked_in_the_whole_process(rt: Runtime, lines: io.StringIO) -> None:
    apart(logging.get_logger(logging.LOGGER).warning, f"a library says {SECRET} and {METRICS}", said=[METRICS])
    assert quoted(lines.getvalue()) == []
    assert lines.getvalue().count("****") == 3


def test_the_oldest_masked_secrets_are_forgotten_first() -> None:
    def many() -> None:
        redaction.add_secrets("the-first-one")
        assert redaction.mask("it is the-first-one") == "it is ****"
        for number in range(100):
            redaction.add_secrets(f"another-one-{number}")
        assert redaction.mask("it is the-first-one, another-one-99") == "it is the-first-one, ****"
        assert len(redaction._in_use.get()) < 20
        redaction.add_secrets("short", None)
        assert redaction.mask("a short text") == "a short text"

    apart(many)
