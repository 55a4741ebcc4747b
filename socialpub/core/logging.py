"""Log lines on stderr, for people or as JSON, without secrets.

Message, fields and traceback of every line are redacted when the line is written. Bound fields (`request_id`,
`post_id`, `delivery_id`) are part of every line inside `bind`, including lines that libraries write.
"""

import json
import logging
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from socialpub.core import clock
from socialpub.core.secrets.redaction import MASK, is_secret, redact, visible
from socialpub.core.settings.schema import LoggingSection

LOGGER = "socialpub"
MAX_TEXT = 16_384
"""Characters of one message, field or traceback. Texts of callers must not fill the disk through the log."""

_LIBRARIES = (
    "uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "huey", "httpx2", "httpcore2", "PIL", "asyncio",
)  # fmt: skip
_MAX_DEPTH = 6
_COMPACT = json.JSONEncoder(separators=(",", ":"))

Level = Literal["debug", "info", "warning", "error"]
_NUMBERS = {name.lower(): number for name, number in logging.getLevelNamesMapping().items()}

_bound: ContextVar[Mapping[str, Any]] = ContextVar("socialpub_log_fields", default={})  # noqa: B039  never mutated


@contextmanager
def bind(**fields: Any) -> Iterator[None]:
    """Add `fields` to every line inside, including lines of libraries and of tasks that start inside."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


class Logger:
    """Writes lines of a constant message and variable fields."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, message: str, /, **fields: Any) -> None:
        self.write("info", message, **fields)

    def warning(self, message: str, /, *, exc_info: Any = None, **fields: Any) -> None:
        self.write("warning", message, exc_info=exc_info, **fields)

    def error(self, message: str, /, *, exc_info: Any = None, **fields: Any) -> None:
        self.write("error", message, exc_info=exc_info, **fields)

    def is_enabled(self, level: Level) -> bool:
        """Return whether lines of this level are written, for callers whose fields take time."""
        return self._logger.isEnabledFor(_NUMBERS[level])

    def write(self, level: Level, message: str, /, *, exc_info: Any = None, **fields: Any) -> None:
        """Write one line, without the fields that are None.

        `exc_info` is an exception, or True for the exception that is being handled.
        """
        if not self.is_enabled(level):
            return
        if exc_info is True:
            exc_info = sys.exc_info()
        elif isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        own_fields = {name: value for name, value in fields.items() if value is not None}
        # No line shows its place in the code: finding the place takes more time than the rest of the line.
        record = self._logger.makeRecord(
            self._logger.name, _NUMBERS[level], "", 0, message, (), exc_info, extra={"fields": own_fields}
        )
        self._logger.handle(record)


def get_logger(name: str) -> Logger:
    """Return the logger of a module. Operators filter logs by the module's path."""
    return Logger(name)


def configure(settings: LoggingSection, stream: TextIO | None = None) -> None:
    """Write the lines of this process to `stream` (stderr) in the configured format. A second call replaces the first.

    Start uvicorn with `log_config=None`. Otherwise, it installs its own handlers.
    """
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter() if settings.format == "json" else _HumanFormatter())
    # No line shows them, and finding them takes time.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    for former in [h for h in root.handlers if isinstance(h, _Handler)]:
        root.removeHandler(former)
    root.addHandler(handler)
    wanted = _NUMBERS[settings.level]
    root.setLevel(max(logging.WARNING, wanted))
    logging.getLogger(LOGGER).setLevel(wanted)
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
        library.setLevel(logging.NOTSET)  # the root's: warnings and worse


class _Handler(logging.StreamHandler[TextIO]):
    """Marks the handler that a second `configure` removes."""


class _Formatter(logging.Formatter):
    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the bound fields and the line's own fields, without secrets."""
        own = getattr(record, "fields", None)
        return {
            str(name): MASK if is_secret(str(name), value) else _clean(value)
            for name, value in {**_bound.get(), **(own if isinstance(own, Mapping) else {})}.items()
        }

    def text(self, record: logging.LogRecord) -> str:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # a library's arguments do not fit the message
            message = str(record.msg)
        return _clean_text(message)

    def trace(self, record: logging.LogRecord) -> str | None:
        """Return the redacted traceback."""
        parts = []
        if record.exc_info and record.exc_info[0] is not None:
            parts.append(self.formatException(record.exc_info))
        if record.stack_info:
            parts.append(record.stack_info)
        # The end of a traceback contains the error. Redact before the cut, which could separate a secret from its name.
        return redact("\n".join(parts))[-MAX_TEXT:] if parts else None


class _JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.text(record),
        }
        # A field never replaces one of the line's own keys.
        line |= {f"field_{name}" if name in line else name: value for name, value in self.fields(record).items()}
        trace = self.trace(record)
        if trace is not None:
            line["exception"] = trace
        return _COMPACT.encode(line)


_PLAIN = re.compile(r'[^ "=]+')
"""A text that needs no quotes."""


class _HumanFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname:<7} {visible(self.text(record))}"
        for name, value in self.fields(record).items():
            is_plain = type(value) is int or (isinstance(value, str) and _PLAIN.fullmatch(value))
            text = str(value) if is_plain else json.dumps(value, ensure_ascii=False)
            line += f" {visible(name)}={visible(text)}"
        trace = self.trace(record)
        if trace is not None:
            line += "\n  " + visible(trace.rstrip(), keep="\n").replace("\n", "\n  ")
        return line


def _time(record: logging.LogRecord) -> str:
    return clock.stamp(datetime.fromtimestamp(record.created, UTC))


def _clean_text(text: str) -> str:
    if len(text) > MAX_TEXT:
        # Redaction does not find a secret that the cut divides, so the last word is dropped.
        text = text[:MAX_TEXT].rpartition(" ")[0] + " …"
    return redact(text)


def _clean(value: Any, depth: int = 0) -> Any:
    """Return the value as a JSON value, without secrets."""
    if isinstance(value, str):
        return _clean_text(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime) and value.tzinfo:
        return clock.stamp(value)
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        named = ((str(name), inner) for name, inner in value.items())
        return {name: MASK if is_secret(name, inner) else _clean(inner, depth + 1) for name, inner in named}
    if depth < _MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [_clean(inner, depth + 1) for inner in value]
    return _clean_text(str(value))
