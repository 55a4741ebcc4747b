"""What to do about an account that cannot be used: one wording for each door at which somebody reads it."""

from enum import StrEnum

from socialpub.providers import registry
from socialpub.providers.errors import AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.providers.protocol import Provider


class Door(StrEnum):
    """Where a remedy is read: it names what can be done there."""

    SHELL = "shell"
    DASHBOARD = "dashboard"


def connect(provider_name: str, door: Door = Door.SHELL) -> str:
    """How an account of this network is connected, again or for the first time, as the end of a sentence: a command, or
    which button to press."""
    if door is Door.DASHBOARD:
        return f"press “Connect {registry.LABELS[provider_name]}” under Profiles."
    return f"socialpub admin connect-profile {provider_name}"


def reconnect(provider_name: str, door: Door = Door.SHELL) -> str:
    """The same for an account that has a profile."""
    return "press “Reconnect” on the profile's page." if door is Door.DASHBOARD else connect(provider_name)


def reconnect_anywhere(provider_name: str) -> str:
    """The same for whoever may read it anywhere, as a post's message."""
    return f"“Reconnect” under Profiles in the dashboard, or `{connect(provider_name)}`"


def begin_again(provider_name: str, door: Door = Door.SHELL) -> str:
    """The sentence for an attempt to connect that came to nothing."""
    return f"Begin again: {connect(provider_name, door)}"


def resume(door: Door = Door.SHELL) -> str:
    """How a pause is ended."""
    return "press “Resume” under System." if door is Door.DASHBOARD else "socialpub admin resume"


def try_held(door: Door = Door.SHELL) -> str:
    """How a network that refuses this app is asked again at once."""
    return "press “Try now” under System" if door is Door.DASHBOARD else "socialpub admin resume"


def test_message(door: Door = Door.SHELL) -> str:
    """How a service that tells the owner is tried."""
    return "press “Send a test message” under System" if door is Door.DASHBOARD else "socialpub admin notify-test"


def after_failure(provider: Provider, error: ProviderError, door: Door = Door.SHELL) -> str:
    """What to do about a call that failed while an account was being connected."""
    if isinstance(error, NotSent | NoAnswer | Throttled):
        return "Nothing was saved. Try again in a while."
    return _after_refusal(provider, error, connect(provider.name, door))


def after_question(provider: Provider, error: ProviderError, door: Door = Door.SHELL) -> str:
    """What to do about a question, asked for a profile, that its network did not answer."""
    if isinstance(error, NotSent | NoAnswer | Throttled):
        return "Try again in a while."
    return _after_refusal(provider, error, reconnect(provider.name, door))


def _after_refusal(provider: Provider, error: ProviderError, how: str) -> str:
    match error:
        case AuthExpired() | Rejected(reauth=True):
            return f"Let the account's owner consent again: {how}"
        case _:
            return f"Check [providers.{provider.name}] in the configuration and the app's page at {provider.label}."
