"""Log lines for people and machines, with bound fields and without secrets."""

import asyncio
import io
import json
import logging

import pytest
from pydantic import SecretStr

from socialpub.core import logging as logs
from socialpub.core.settings.schema import LoggingSection
from tests.samples.secrets import SECRETS

log = logging.getLogger("socialpub")
"""As a library writes."""

ours = logs.get_logger("socialpub")


@pytest.fixture
def written():
    """Configure logging, and return a function that returns the lines. The fixture restores the configuration."""
    loggers = [logging.getLogger(name) for name in ("", logs.LOGGER, *logs._LIBRARIES)]
    before = [(logger, logger.level, list(logger.handlers), logger.propagate) for logger in loggers]

    def start(**settings):
        root = logging.getLogger()
        # pytest's own handlers raise for lines that ours survives.
        root.handlers[:] = [h for h in root.handlers if not type(h).__module__.startswith("_pytest")]
        stream = io.StringIO()
        logs.configure(LoggingSection(**settings), stream)
        return lambda: stream.getvalue().splitlines()

    yield start
    for logger, level, handlers, propagate in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.propagate = propagate


def test_a_human_line_has_time_level_message_and_fields(written):
    lines = written()
    ours.info("published", delivery_id="d1", seconds=1.5, note="two words", empty="")
    (line,) = lines()
    instant, rest = line.split(" ", 1)
    assert len(instant) == 24
    assert instant.endswith("Z")
    assert rest == 'INFO    published delivery_id=d1 seconds=1.5 note="two words" empty=""'


def test_a_json_line_is_one_object_with_everything_in_it(written):
    lines = written(format="json")
    ours.warning("hä?", delivery_id="d1", count=3, nothing=None, message="mine", inner={"a": [1]})
    (line,) = map(json.loads, lines())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "socialpub",
        "message": "hä?",
        "delivery_id": "d1",
        "count": 3,
        "field_message": "mine",
        "inner": {"a": [1]},
    }


def test_bound_fields_are_in_every_line_inside_and_in_no_line_outside(written):
    lines = written(format="json")
    with logs.bind(request_id="r1"):
        with logs.bind(post_id="p1"):
            logging.getLogger("socialpub.posts").info("inside")
            logging.getLogger("huey").warning("from a library")
        log.info("between")
    log.info("outside")
    inside, library, between, outside = map(json.loads, lines())
    assert (inside["request_id"], inside["post_id"]) == ("r1", "p1")
    assert library["post_id"] == "p1"
    assert between["request_id"] == "r1"
    assert "post_id" not in between
    assert "request_id" not in outside


def test_two_requests_at_once_do_not_see_each_others_fields(written):
    lines = written(format="json")

    async def request(name, turn, next_turn):
        with logs.bind(request_id=name):
            await turn.wait()
            log.info(name)
            next_turn.set()

    async def both():
        first, second, end = asyncio.Event(), asyncio.Event(), asyncio.Event()
        first.set()
        await asyncio.gather(request("b", second, end), request("a", first, second))

    asyncio.run(both())
    assert [(line["message"], line["request_id"]) for line in map(json.loads, lines())] == [("a", "a"), ("b", "b")]


def test_a_level_that_is_not_enabled_costs_no_formatting(written):
    class Costly:
        def __str__(self):
            raise AssertionError("was formatted")

    lines = written(level="warning")
    ours.info("quiet", value=Costly())
    log.info("quiet %s", Costly())
    assert lines() == []


def test_libraries_write_only_warnings_and_errors(written):
    logging.getLogger("uvicorn.error").addHandler(logging.StreamHandler())
    lines = written(level="debug")
    for name in ("uvicorn.access", "uvicorn.error", "httpx2", "huey.consumer", "huey"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("trouble")
    assert [line.split()[2] for line in lines()] == ["trouble"] * 5


def test_configuring_twice_writes_each_line_once_and_leaves_other_handlers_alone(written):
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    first, second = written(), written(format="json")
    log.info("once")
    assert first() == []
    assert len(second()) == 1
    assert other in logging.getLogger().handlers


# --- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("format", ["human", "json"])
def test_no_secret_is_read_in_a_message_a_field_or_a_traceback(written, text, format):
    lines = written(format=format)
    log.info(text)
    log.info("%s", text)
    ours.info("field", detail=text, deep={"list": [text]})
    try:
        raise ValueError(text)
    except ValueError:
        log.exception("failed")
    shown = "\n".join(lines())
    assert "hush" not in shown
    assert shown.count("****") >= 5


@pytest.mark.parametrize("name", ["access_token", "refreshToken", "client_secret", "authorization", "token", "Cookie"])
def test_a_field_with_the_name_of_a_secret_is_hidden(written, name):
    lines = written(format="json")
    ours.info("named", **{name: "hush"})
    ours.info("named", inner={name: ["hush"]})
    ours.info("named", wrapped=SecretStr("hush"))
    assert "hush" not in "".join(lines())


# --- robustness ------------------------------------------------------------------------------------------------------


def test_an_exception_is_one_field_of_a_json_line_and_indented_below_a_human_one(written):
    for format in ("json", "human"):
        lines = written(format=format)
        try:
            raise RuntimeError("boom")
        except RuntimeError:
            ours.error("failed", exc_info=True, post_id="p")
        first, *rest = lines()
        if format == "json":
            assert json.loads(first)["exception"].endswith("RuntimeError: boom")
            assert rest == []
        else:
            assert first.endswith("failed post_id=p")
            assert rest[-1] == "  RuntimeError: boom"


@pytest.mark.parametrize("format", ["human", "json"])
def test_a_caller_cannot_forge_a_line(written, format):
    lines = written(format=format)
    ours.info("name\n2026 ERROR forged", label="a\r\nb\x1b[31m")
    assert len(lines()) == 1
    assert "\x1b" not in lines()[0]


@pytest.mark.parametrize("format", ["human", "json"])
def test_unusual_values_are_logged(written, format):
    lines = written(format=format)
    log.info("wrong arguments %d", "x")
    ours.info("odd", nan=float("nan"), surrogate="\ud800", obj=object(), long="a b " * 100_000)
    endless = []
    endless.append(endless)
    ours.info("endless", endless=endless)
    assert len(lines()) == 3
    assert all(len(line) < 20_000 for line in lines())
    if format == "json":
        assert [json.loads(line)["level"] for line in lines()] == ["info"] * 3
