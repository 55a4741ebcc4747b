"""What to do about an account that cannot be used: one wording for logs, pages, posts and the command line."""

from socialpub.providers.errors import AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.providers.protocol import Provider


def reconnect(provider_name: str) -> str:
    """The command that connects an account of this network, again or for the first time."""
    return f"socialpub admin connect-profile {provider_name}"


def begin_again(provider_name: str) -> str:
    """The sentence for an attempt to connect that came to nothing."""
    return f"Begin again: {reconnect(provider_name)}"


def after_failure(provider: Provider, error: ProviderError) -> str:
    """What to do about a call that failed while an account was being connected."""
    match error:
        case AuthExpired() | Rejected(reauth=True):
            return f"Let the account's owner consent again: {reconnect(provider.name)}"
        case NotSent() | NoAnswer() | Throttled():
            return "Nothing was saved. Try again in a while."
        case _:
            return f"Check [providers.{provider.name}] in the configuration and the app's page at {provider.label}."
