"""Hints: what to do about an unusable account, for each surface where the owner reads the hint.

A function for one action returns a phrase, "run `…`" or "press “…”", without a period.
"""

from enum import StrEnum

from socialpub.core import commands
from socialpub.providers import registry
from socialpub.providers.base import Provider
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled


class Surface(StrEnum):
    """The entry point at which the owner reads a hint."""

    SHELL = "shell"
    DASHBOARD = "dashboard"


def sentence(phrase: str) -> str:
    """Return the phrase as a sentence of its own."""
    return f"{phrase[0].upper()}{phrase[1:]}."


def connect(provider_name: str, surface: Surface = Surface.SHELL, *options: str) -> str:
    """Return the action that connects an account of this network, again or for the first time."""
    if surface is Surface.DASHBOARD:
        return f"press “Connect {registry.LABELS[provider_name]}” under Profiles"
    return _run("admin", "connect-profile", provider_name, *options)


def reconnect(provider_name: str, surface: Surface = Surface.SHELL) -> str:
    """Return the action that connects the account of a profile again."""
    return "press “Reconnect” on the profile's page" if surface is Surface.DASHBOARD else connect(provider_name)


def reconnect_anywhere(provider_name: str) -> str:
    """Return the same for a message without a fixed surface, such as a post's."""
    where = "under Profiles in the dashboard"
    return f"press “Reconnect” {where}{commands.or_run('admin', 'connect-profile', provider_name)}"


def begin_again(provider_name: str, surface: Surface = Surface.SHELL) -> str:
    """Return the sentence for an attempt to connect that failed."""
    return f"To start again, {connect(provider_name, surface)}."


def resume(surface: Surface = Surface.SHELL) -> str:
    """Return the action that ends a pause."""
    return "press “Resume” under System" if surface is Surface.DASHBOARD else _run("admin", "resume")


def try_held(surface: Surface = Surface.SHELL) -> str:
    """Return the action that retries a network that refuses this app at once."""
    return "press “Try now” under System" if surface is Surface.DASHBOARD else _run("admin", "resume")


def test_message(surface: Surface = Surface.SHELL) -> str:
    """Return the action that tests a notification service."""
    return "press “Send a test message” under System" if surface is Surface.DASHBOARD else _run("admin", "notify-test")


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


def after_question(provider: Provider, error: ProviderError, surface: Surface = Surface.SHELL) -> str:
    """Return the remedy for a question that the network did not answer."""
    if isinstance(error, NotSent | NoAnswer | Throttled):
        return "Try again later."
    return _after_refusal(provider, error, reconnect(provider.name, surface))


def _after_refusal(provider: Provider, error: ProviderError, how: str) -> str:
    match error:
        case AuthExpired() | Rejected(reauth=True):
            return f"To give consent again, {how}."
        case _:
            return f"Check [providers.{provider.name}] in the configuration and the app's page at {provider.label}."


def _run(*words: str) -> str:
    return f"run `{commands.line(*words)}`"
