"""How a call to a network can fail.

    ProviderError
      NotSent          nothing left this machine: try again
      NoAnswer         it left, no usable answer: it may have happened
      Throttled        refused for now, perhaps until a time that the network names
      AuthExpired      refresh, then ask the owner to reconnect
      Rejected         answered and refused
      AppRefused       answered and refused for the whole app: every post of this network meets the same

Errors describe the call; outcomes (`base.py`) describe the post. Messages are safe to show: no token, no query string,
no body. Secrets in use are removed from the words of a network here.
"""

from collections.abc import Set
from enum import StrEnum

from socialpub.core.secrets.redaction import mask_value


class ProviderError(Exception):
    """`message` may be shown to the owner; `code` is the network's own, `request_id` what its support asks for."""

    def __init__(self, message: str, *, code: str | None = None, request_id: str | None = None) -> None:
        self.message = mask_value(message)
        self.code = mask_value(code)
        self.request_id = mask_value(request_id)
        super().__init__(self.message)


class NotSent(ProviderError):
    """Nothing left this machine (name not found, connection refused): the call certainly did not happen."""


class NoAnswer(ProviderError):
    """It left and no usable answer came (5xx, time-out, cut, unreadable): it may have happened."""


class Throttled(ProviderError):
    """Refused for now (429). `retry_after_seconds` is what the network named, never shortened; None: it named none.

    `steps` names steps of the same account that wait with the refused one."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        steps: Set[str] = frozenset(),
        code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, code=code, request_id=request_id)
        self.retry_after_seconds = retry_after_seconds
        self.steps = steps


class AuthExpired(ProviderError):
    """The access token is not accepted (401): refresh once, else the owner must reconnect."""


class Reason(StrEnum):
    """The refusals that a network's own steps handle in a special way."""

    BUSY = "busy"
    """Something else writes to the same place."""
    DENIED = "denied"
    """The app may not read this account."""
    DUPLICATE = "duplicate"
    GONE = "gone"
    MEDIA_INVALID = "media-invalid"
    NOT_PERMITTED = "not-permitted"
    """The account, or this connection of it, may not use the place."""
    SCOPE_MISSING = "scope-missing"
    TOO_LARGE = "too-large"
    TOO_LONG = "too-long"
    """For what the account may post, which may have changed since its data was fetched."""
    OTHER = "other"


class Rejected(ProviderError):
    """Answered and refused for good. `status` is the HTTP status. `content`: the post itself was refused.

    `reauth`: the owner has to consent again. From an OAuth refresh without `reauth` it is a fault of the app's
    credentials, after which the account's tokens are kept. `rest_seconds`: how long the account is left alone.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: Reason = Reason.OTHER,
        reauth: bool = False,
        rest_seconds: float = 0.0,
        content: bool = False,
        code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, code=code, request_id=request_id)
        self.status = status
        self.reason = reason
        self.reauth = reauth
        self.rest_seconds = rest_seconds
        self.content = content


class AppRefused(ProviderError):
    """Refused for the whole app (402, not approved, capped): hold the queue of the network and probe slowly."""


# --- how long a refusal lasts ----------------------------------------------------------------------------------------

MAX_WAIT_SECONDS = 86400.0
"""A network that names a longer wait is asked again after a day."""
MAX_PLAUSIBLE_SECONDS = 366 * 86400.0


def plausible_wait(seconds: float | None) -> float | None:
    """Return the wait if it is plausible: not in milliseconds, in the past or decades long. None: it is not."""
    return seconds if seconds is not None and 0 < seconds <= MAX_PLAUSIBLE_SECONDS else None


def named_wait(error: ProviderError) -> float | None:
    """Return the seconds that a rate limit asks to wait. None: it names no plausible time."""
    return plausible_wait(error.retry_after_seconds) if isinstance(error, Throttled) else None
