"""The errors that callers and operators see, one class per code (spec section 7, contract 1.7).

`detail` is safe to show. The cause belongs in the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from socialpub.core.secrets.redaction import mask

MAX_ERRORS = 100
"""The maximum number of failing fields that a response lists. The response counts the other fields."""

MAX_PATH = 80
"""Quoted characters of a path. A longer path may be pasted text."""

MAX_QUOTE = 300
"""Quoted characters of a caller's text, in a response or a log line."""


class FieldCode(StrEnum):
    """Codes for which an entry point may have its own message. Callers never see these codes."""

    TEXT_MISSING = "textMissing"
    TIME_PAST = "timePast"
    PROFILE_UNKNOWN = "profileUnknown"
    PROFILE_DISCONNECTED = "profileDisconnected"
    ARTIFACT_UNKNOWN = "artifactUnknown"
    UPLOAD_REJECTED = "uploadRejected"
    OPTION_MISSING = "optionMissing"


@dataclass(frozen=True, slots=True)
class FieldError:
    """A failing field: its path in the request, and the end of a sentence that says what to change."""

    path: tuple[str | int, ...]
    message: str
    code: FieldCode | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """The whole sentence: `media[0].artifactId must be a UUID`."""
        if not self.path:
            return self.message
        name = format_path(self.path[-1:])
        if self.message.startswith(f"{name} "):  # messages about a network's option contain the option's name
            return format_path(self.path) + self.message.removeprefix(name)
        return f"{format_path(self.path)}{':' if self.message[:1].isupper() else ''} {self.message}"


def format_path(path: Sequence[str | int]) -> str:
    """Return a path in the form `media[0].artifactId`."""
    written = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return cut(written, MAX_PATH)


def cut_path(path: Sequence[str | int]) -> list[str | int]:
    """Return the path for a response, with each name cut: names may come from the caller."""
    return [part if isinstance(part, int) else cut(part) for part in path]


def cut(text: str, longest: int = MAX_QUOTE) -> str:
    """Return the text, cut to `longest` characters with "…" at the end."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def end_sentence(sentence: str) -> str:
    """Return the sentence with a period, unless it ends with a period or a question mark."""
    return sentence if sentence.endswith(("?", ".")) else f"{sentence}."


def reason_for(error: Exception) -> str:
    """Return the reason of an error, without the file and the error number."""
    return getattr(error, "strerror", None) or str(error)


class OperatorError(Exception):
    """A problem that only the operator can fix. `hint` says how."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = mask(message)
        self.hint = mask(hint) if hint else hint
        super().__init__(self.message)

    @property
    def sentence(self) -> str:
        """The message and the hint, in one line."""
        return " ".join(filter(None, (self.message, self.hint)))


class SocialpubError(Exception):
    """An error that the API returns as a problem."""

    code: ClassVar[str] = "internalError"
    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal-error"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        errors: Sequence[FieldError] = (),
        *,
        retry_after_seconds: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after_seconds = retry_after_seconds
        self.headers = headers


class InvalidRequest(SocialpubError):
    """`errors` has at most `MAX_ERRORS` items; `total` counts all errors (contract 1.4)."""

    code, status, slug, title = "invalidRequest", 400, "invalid-request", "Invalid request"

    def __init__(
        self,
        detail: str,
        errors: Sequence[FieldError] = (),
        *,
        total: int = 0,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail, errors[:MAX_ERRORS], headers=headers)
        self.total = max(total, len(errors))

    @classmethod
    def at(cls, *path: str | int, message: str) -> "InvalidRequest":
        """Return the error for one field. Without a path, `message` is a whole sentence about the request."""
        error = FieldError(path, message)
        return cls.from_errors([error]) if path else cls(message, [error])

    @classmethod
    def from_errors(cls, errors: Sequence[FieldError], total: int = 0, *, whole: str = "The body") -> "InvalidRequest":
        """Return one error for all fields. `detail` explains the first field and counts the others.

        An error without a path is about the `whole`.
        """
        total = max(total, len(errors))
        first = errors[0].sentence if errors[0].path else f"{whole} {errors[0].message}"
        detail = end_sentence(first)
        if total > 1:
            detail += " There is 1 more error" if total == 2 else f" There are {total - 1} more errors"
            detail += f". The response lists the first {MAX_ERRORS}." if total > MAX_ERRORS else "."
        return cls(detail, errors, total=total)


class Unauthorized(SocialpubError):
    code, status, slug, title = "unauthorized", 401, "unauthorized", "Unauthorized"


class Forbidden(SocialpubError):
    code, status, slug, title = "forbidden", 403, "forbidden", "Forbidden"


class NotFound(SocialpubError):
    code, status, slug, title = "notFound", 404, "not-found", "Not found"


class MethodNotAllowed(SocialpubError):
    code, status, slug, title = "methodNotAllowed", 405, "method-not-allowed", "Method not allowed"


class RequestTimeout(SocialpubError):
    """The response ends the connection (contract 1.20)."""

    code, status, slug, title = "requestTimeout", 408, "request-timeout", "Request timeout"


class Conflict(SocialpubError):
    code, status, slug, title = "conflict", 409, "conflict", "Conflict"


class PayloadTooLarge(SocialpubError):
    code, status, slug, title = "payloadTooLarge", 413, "payload-too-large", "Payload too large"


class UnsupportedMediaType(SocialpubError):
    code, status, slug, title = "unsupportedMediaType", 415, "unsupported-media-type", "Unsupported media type"


class RateLimited(SocialpubError):
    code, status, slug, title = "rateLimited", 429, "rate-limited", "Too many requests"


class HeadersTooLarge(SocialpubError):
    """The response ends the connection, before the request is complete (contract 1.19)."""

    code, status, slug, title = "headersTooLarge", 431, "headers-too-large", "Request header fields too large"


class InternalError(SocialpubError):
    pass


class Unavailable(SocialpubError):
    """The disk is full, the database is locked, or the process stops. The same request may succeed later."""

    code, status, slug, title = "unavailable", 503, "unavailable", "Unavailable"

    def __init__(self, detail: str, *, retry_after_seconds: int = 5) -> None:
        super().__init__(detail, retry_after_seconds=retry_after_seconds)


def disk_full() -> Unavailable:
    return Unavailable("The disk is full. Free some space and send the request again.", retry_after_seconds=60)


ALL = tuple(SocialpubError.__subclasses__())


def file_system_cannot(what: str) -> OperatorError:
    """Return the error for a file system without a function that every local disk has, such as a network drive."""
    return OperatorError(
        f"The file system of data_dir cannot {what}.",
        "Use a local disk: move data_dir to one. Most network drives lack functions that SQLite needs.",
    )
