"""What a failed call means for its post (design: "The delivery", the table). Exceptions speak about the call, results
about the post; a network's own error table is asked first."""

from socialpub.accounts import cooldowns, remedies, renewal
from socialpub.db.models import Delivery, Profile, ProfileStatus
from socialpub.providers.errors import AppRefused, AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.providers.job import Withdrawn
from socialpub.providers.outcomes import Held, Refused, Unknown
from socialpub.publishing import deliveries, owner_wait
from socialpub.publishing.results import Limited, Missing, NeedsOwner, Result, Retry, Undecidable
from socialpub.runtime import Runtime

LOCKED_SECONDS = 10.0


def of_error(rt: Runtime, delivery: Delivery, error: ProviderError, *, asked: bool) -> Result:
    """`asked`: the network answered a call of this run, rather than one that came before it (a token)."""
    commits = delivery.commits_next
    match error:
        case renewal.Locked():
            return Retry(error.message, seconds=LOCKED_SECONDS)
        case NotSent():
            return Retry(error.message, error.code)
        case Throttled():
            # Under the steps' names, which every delivery of the profile shares.
            endpoints = {cooldowns.endpoint_of(delivery.step_name), *error.steps}
            return Limited(cooldowns.sensible(error.retry_after_seconds), endpoints, error.message, error.code)
        case AppRefused() | Rejected(reauth=False) if delivery.progress.look_first and asked:
            return Missing(
                rt.clock.monotonic(), asked=False
            )  # what cannot be asked about keeps nothing from being published
        case AppRefused():
            return Held(error.message, error.code)
        case AuthExpired() | Rejected(reauth=True):
            return NeedsOwner(owner_wait.sentence(delivery.provider, error.message), error.code)
        case Rejected() if delivery.progress.reading_back:
            return _not_readable(error.message)
        case Rejected():
            return Refused(error.message, error.code, content=error.content)
        case NoAnswer() if commits:
            return Unknown(error.message, error.code)
        case _:
            return Retry(error.message, error.code)


def of_withdrawal(delivery: Delivery, withdrawn: Withdrawn) -> Result:
    """The profile was disconnected, or the post stopped, just before the call."""
    if delivery.may_be_public and str(withdrawn) == deliveries.STOPPED:
        return Retry(deliveries.STOPPED, seconds=0.0)  # the claim looks once more, and ends it
    return not_sendable(delivery, str(withdrawn))


def not_sendable(delivery: Delivery, message: str, code: str | None = None) -> Result:
    """Nothing can be sent any more. Whether something is public already cannot be found out either then."""
    return _not_readable(message) if delivery.may_be_public else Refused(message, code)


def _not_readable(message: str) -> Undecidable:
    return Undecidable(f"It could not be read back: {message} Look at the account.")


def of_unusable(delivery: Delivery, profile: Profile) -> Result | None:
    """What it means that nothing can be sent for this profile; None when it can."""
    match profile.status:
        case ProfileStatus.DISCONNECTED:
            if delivery.may_be_public:
                return _not_readable("The profile was disconnected.")
            how = remedies.reconnect(profile.provider)
            return Refused(
                f"The profile was disconnected. To connect the account again, {how}. Then create the post again."
            )
        case ProfileStatus.REAUTH_REQUIRED:
            return NeedsOwner(owner_wait.reason(profile))
        case _:
            return None


def of_own_failure(delivery: Delivery) -> Result:
    """After an exception that nobody foresaw."""
    if delivery.commits_next:
        return Unknown("socialpub failed unexpectedly during the call; its log says why")
    return Retry("socialpub failed unexpectedly; its log says why.")
