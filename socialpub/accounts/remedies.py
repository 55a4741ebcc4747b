"""What the owner does about an unusable account, for each surface where the owner reads it.

A function for one action returns a phrase, "run `…`" or "press “…”", without a period.
"""

from enum import StrEnum

from socialpub.core import commands
from socialpub.providers import registry
from socialpub.providers.auth import SignIn
from socialpub.providers.base import Provider
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled


class Surface(StrEnum):
    """The entry point at which the owner reads a hint."""

    SHELL = "shell"
    DASHBOARD = "dashboard"
    ANYWHERE = "anywhere"
    """A caller of the API, or a message about a post: the owner may use the dashboard or a shell."""


def sentence(phrase: str) -> str:
    """Return the phrase as a sentence of its own."""
    return f"{phrase[0].upper()}{phrase[1:]}."


def connect(provider_name: str, surface: Surface = Surface.SHELL, *options: str) -> str:
    """Return the action that connects an account of this network, again or for the first time."""
    button = f"“Connect {registry.LABELS[provider_name]}” under Profiles"
    return _press(button, surface, "admin", "connect-profile", provider_name, *options)


def reconnect(provider_name: str, surface: Surface = Surface.SHELL) -> str:
    """Return the action that connects the account of a profile again."""
    button = "“Reconnect” on the profile's page" if surface is Surface.DASHBOARD else "“Reconnect” under Profiles"
    return _press(button, surface, "admin", "connect-profile", provider_name)


def reconnect_message(provider_name: str, reason: str | None) -> str:
    """Return the message about an account that must be connected again, for any surface."""
    why = reason or "the network refuses its tokens"
    how = sentence(reconnect(provider_name, Surface.ANYWHERE))
    return f"The account must be connected again: {why.rstrip('.')}. {how}"


def create_board(profile_id: str, surface: Surface = Surface.SHELL) -> str:
    """Return the action that creates a board of this account."""
    return _press("“Create board” on the profile's page", surface, "admin", "create-board", profile_id, "NAME")


def begin_again(provider_name: str, surface: Surface = Surface.SHELL) -> str:
    """Return the sentence for an attempt to connect that failed."""
    return f"To start again, {connect(provider_name, surface)}."


def resume(surface: Surface = Surface.SHELL) -> str:
    """Return the action that ends a pause."""
    return _press("“Resume” under System", surface, "admin", "resume")


def approve(post_id: str, surface: Surface = Surface.SHELL) -> str:
    """Return how the owner approves a post."""
    return _press("“Approve” or “Stop” on the post's page", surface, "admin", "approve-post", post_id)


def try_held(surface: Surface = Surface.SHELL) -> str:
    """Return the action that retries a network that refuses this app at once."""
    return _press("“Try now” under System", surface, "admin", "resume")


def test_message(surface: Surface = Surface.SHELL) -> str:
    """Return the action that tests a notification service."""
    return _press("“Send a test message” under System", surface, "admin", "notify-test")


def add_address(surface: Surface = Surface.SHELL) -> str:
    """Return the action that turns on notifications, as a sentence."""
    if surface is Surface.DASHBOARD:
        return "Add an address under System, “Notifications”: mail, ntfy, Gotify, Telegram or another service."
    return "Set [notify] urls to your addresses: mail, ntfy, Gotify, Telegram and others."


def after_failure(provider: Provider, error: ProviderError, surface: Surface = Surface.SHELL) -> str:
    """Return the remedy for a call that failed while an account was being connected."""
    if isinstance(error, NotSent | NoAnswer | Throttled):
        return "Nothing was saved. Try again later."
    return _after_refusal(provider, error, connect(provider.name, surface))


def after_query(provider: Provider, error: ProviderError, surface: Surface = Surface.SHELL) -> str:
    """Return the remedy for a query that the network did not answer."""
    if isinstance(error, NotSent | NoAnswer | Throttled):
        return "Try again later."
    return _after_refusal(provider, error, reconnect(provider.name, surface))


def _after_refusal(provider: Provider, error: ProviderError, how: str) -> str:
    has_fields = isinstance(provider.auth, SignIn)
    match error:
        case AuthExpired() | Rejected(reauth=True):
            return f"To {'sign in' if has_fields else 'give consent'} again, {how}."
        case _ if has_fields:
            return f"Check the account at {provider.label} and [providers.{provider.name}] in the configuration."
        case _:
            return f"Check [providers.{provider.name}] in the configuration and the app's page at {provider.label}."


def _press(button: str, surface: Surface, *words: str) -> str:
    """Return the action for a button, or for the command with the same effect."""
    match surface:
        case Surface.DASHBOARD:
            return f"press {button}"
        case Surface.ANYWHERE:
            return f"press {button} in the dashboard{commands.or_run(*words)}"
        case Surface.SHELL:
            return f"run `{commands.line(*words)}`"
