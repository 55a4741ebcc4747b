"""What a failed call means for its post (design: "The delivery", the table). Exceptions speak about the call, results
about the post; a network's own error table is asked first."""

from socialpub.accounts import cooldowns, remedies
from socialpub.db.models import Delivery, Profile, ProfileStatus
from socialpub.providers.errors import AppRefused, AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.providers.outcomes import Held, Refused, Unknown
from socialpub.publishing.results import Limited, Result, Retry, Undecidable


def of_error(delivery: Delivery, error: ProviderError) -> Result:
    commits = delivery.commits_next
    match error:
        case NotSent():
            return Retry(error.message, error.code)
        case Throttled():
            # Under the step's name, which every delivery of the profile shares.
            endpoint = cooldowns.endpoint_of(delivery.step_name)
            return Limited(error.retry_after_seconds, endpoint, error.message, error.code)
        case AppRefused():
            return Held(error.message, error.code)
        case AuthExpired():
            return _reconnect(delivery, error)
        case Rejected() if error.reauth:
            return _reconnect(delivery, error)
        case Rejected():
            return not_sendable(delivery, error.message, error.code)
        case NoAnswer() if commits:
            return Unknown(error.message, error.code)
        case _:
            return Retry(error.message, error.code)


def _reconnect(delivery: Delivery, error: ProviderError) -> Result:
    how = remedies.reconnect(delivery.provider)
    message = f"{error.message.rstrip('.')}. Connect the account again (`{how}`), then create the post again."
    if delivery.progress.reading_back:
        return Undecidable(message)
    return Refused(message, error.code, reauth=True)


def not_sendable(delivery: Delivery, message: str, code: str | None = None) -> Result:
    """Nothing can be sent any more. Whether something is public already cannot be found out either then."""
    if delivery.progress.reading_back:
        return Undecidable(f"It could not be read back: {message} Look at the account.")
    return Refused(message, code)


def why_unusable(profile: Profile) -> str | None:
    """Why nothing can be sent for this profile, and what to do; None when it can."""
    match profile.status:
        case ProfileStatus.DISCONNECTED:
            how = remedies.reconnect(profile.provider)
            return f"The profile was disconnected. Connect the account again (`{how}`) and create the post anew."
        case ProfileStatus.REAUTH_REQUIRED:
            why = (profile.reason or "the network refuses its tokens").rstrip(".")
            return f"The account must be connected again (`{remedies.reconnect(profile.provider)}`): {why}."
        case _:
            return None


def of_own_failure(delivery: Delivery) -> Result:
    """After an exception that nobody foresaw."""
    if delivery.commits_next:
        return Unknown("socialpub failed unexpectedly during the call; its log says why")
    return Retry("socialpub failed unexpectedly; its log says why.")
