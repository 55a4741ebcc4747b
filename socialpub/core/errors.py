"""Every failure that a caller or the operator can meet, one class per code (spec section 7, contract 1.7).

`detail` is safe to show; the cause belongs in the log. Nothing here knows HTTP beyond the status that its code means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One failing field: where it stands in the request, and what to change."""

    path: tuple[str | int, ...]
    message: str


class OperatorError(Exception):
    """Something that only the operator can put right. `hint` says how."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SocialpubError(Exception):
    """A failure that a caller of the API meets as a problem."""

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
    code, status, slug, title = "invalidRequest", 400, "invalid-request", "Invalid request"

    @classmethod
    def at(cls, *path: str | int, message: str) -> "InvalidRequest":
        """One failing field."""
        return cls(message, [FieldError(path, message)])


class Unauthorized(SocialpubError):
    code, status, slug, title = "unauthorized", 401, "unauthorized", "Unauthorized"


class Forbidden(SocialpubError):
    code, status, slug, title = "forbidden", 403, "forbidden", "Forbidden"


class NotFound(SocialpubError):
    code, status, slug, title = "notFound", 404, "not-found", "Not found"


class MethodNotAllowed(SocialpubError):
    code, status, slug, title = "methodNotAllowed", 405, "method-not-allowed", "Method not allowed"


class Conflict(SocialpubError):
    code, status, slug, title = "conflict", 409, "conflict", "Conflict"


class PayloadTooLarge(SocialpubError):
    code, status, slug, title = "payloadTooLarge", 413, "payload-too-large", "Payload too large"


class UnsupportedMediaType(SocialpubError):
    code, status, slug, title = "unsupportedMediaType", 415, "unsupported-media-type", "Unsupported media type"


class RateLimited(SocialpubError):
    code, status, slug, title = "rateLimited", 429, "rate-limited", "Too many requests"


class InternalError(SocialpubError):
    pass


class Unavailable(SocialpubError):
    """Disk full, database locked, shutting down: the same request may succeed in a moment."""

    code, status, slug, title = "unavailable", 503, "unavailable", "Unavailable"

    def __init__(self, detail: str, *, retry_after_seconds: int = 5) -> None:
        super().__init__(detail, retry_after_seconds=retry_after_seconds)


ALL: tuple[type[SocialpubError], ...] = (
    InvalidRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    PayloadTooLarge,
    UnsupportedMediaType,
    RateLimited,
    InternalError,
    Unavailable,
)
