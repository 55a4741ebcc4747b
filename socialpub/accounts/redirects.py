"""The app at a network and its redirect address: what the owner registers before an account can be connected.

The redirect address must be the same, character by character, in the consent page's URL, in the token call and at the
app's page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.networks import LOOPBACK, AppSection, NetworkSection
from socialpub.providers.base import Provider
from socialpub.providers.oauth import OAuth
from socialpub.runtime import Runtime

DEFAULT_PORTS = {"http": 80, "https": 443}
COPY_IT = "After you give consent, copy the whole address from the browser's address bar."


class WrongAddress(OperatorError):
    """The pasted text is not the address at which this attempt ended. The attempt continues."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The result of checking a redirect address against the network's rule."""

    address: str
    app_kind: str
    """The kind of app to register, such as `desktop`. Empty: the network has one kind."""
    sentence: str
    change: str | None = None
    """The change to make in the configuration. None: the network accepts the address."""
    pasted: bool = False
    """Whether the owner must paste the address after the change."""

    @property
    def remedy(self) -> str | None:
        """Return the change and the next action."""
        if self.change is None:
            return None
        paste = " If the browser shows an error after your consent, paste the address from its address bar."
        return f"{self.change} {commands.restart()}.{paste if self.pasted else ''}"


def check(settings: Settings, provider: Provider) -> Redirect | None:
    """Compare the redirect address with the network's rule. None: the network has no redirects, or
    a stand-in, such as the sandbox, has no rule."""
    name, label = provider.name, provider.label
    if not isinstance(provider.auth, OAuth):
        return None
    section: AppSection = getattr(settings.providers, name)
    if section.is_stand_in:
        return None
    rules = provider.auth.redirect_rules
    address = settings.redirect_url(name)
    row = rules.find(address)
    if row is not None:
        sentence = f"{label}: register the redirect address {address} with {_app(row.app)}."
        return Redirect(address, row.app, sentence)
    better = settings.callback_url(name)
    change = f"Remove redirect_url from [providers.{name}]"
    if rules.find(better) is None:
        better = rules.local(settings.listen_ports[0], _path(name)) or better
        change = f'Set redirect_url = "{better}" in [providers.{name}]'
    fits = rules.find(better)
    kind = fits.app if fits else ""
    sentence = f"{label} does not accept the redirect address {address}. It accepts {rules.sentence}."
    change += f" and register {better} with {_app(kind)}."
    return Redirect(address, kind, sentence, change, pasted=not _leads_here(settings, name, better))


def find_missing_app(rt: Runtime, provider_name: str) -> OperatorError | None:
    """Return the error if the section of this network is not complete."""
    section: NetworkSection = getattr(rt.settings.providers, provider_name)
    provider, missing = rt.providers[provider_name], section.missing_keys()
    if section.is_set_up:
        return None
    if not missing:
        return OperatorError(f"{provider.label} is not enabled.", f"Set enabled = true in [providers.{provider_name}].")
    keys = " and ".join(missing)
    rule = check(rt.settings, provider)
    app = f"a {rule.app_kind} app" if rule and rule.app_kind else "an app"
    address = f", set its redirect address to {rt.settings.redirect_url(provider_name)}"
    wrong = f" {rule.sentence} {rule.change}" if rule and rule.change else ""
    return OperatorError(
        f"The app credentials for {provider.label} are missing: {keys} in [providers.{provider_name}] "
        f"{'is' if len(missing) == 1 else 'are'} empty.",
        f"Register {app} with {provider.label}{'' if wrong else address} and copy its credentials into the "
        f"configuration.{wrong}",
    )


def returns_here(settings: Settings, network: str) -> bool:
    """Return whether the configured redirect address leads the browser to this appliance."""
    return _leads_here(settings, network, settings.redirect_url(network))


def read_pasted_address(text: str, redirect_uri: str) -> Mapping[str, str]:
    """Return the query of a pasted address: the whole address, or only what follows the question mark.

    Raises WrongAddress for a URL with another host or path than `redirect_uri`, and for text that is not a URL.
    """
    text = text.strip().strip("\"'<>").partition("#")[0]
    try:
        place, query = _place(text) if "?" in text else (None, text)
        parameters = dict(parse_qsl(query, keep_blank_values=True))
    except ValueError:
        place, parameters = None, {}
    if "code" not in parameters and "error" not in parameters:
        raise WrongAddress(
            "This is not the address at which the browser ended. The address contains neither code= nor error=.",
            COPY_IT,
        )
    if place not in (None, _place(redirect_uri)[0]):
        raise WrongAddress(f"This is not the redirect address of this attempt, which is {redirect_uri}.", COPY_IT)
    return parameters


def _place(address: str) -> tuple[tuple[str, str] | None, str]:
    """Return the host and path of a URL, and the query of the URL.

    The scheme is ignored: browsers hide and change the scheme.
    """
    if address.startswith("?"):
        return None, address[1:]
    parts = urlsplit(address if "://" in address else f"http://{address}")
    port = "" if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return (f"{(parts.hostname or '').rstrip('.')}{port}", parts.path), parts.query


def _app(kind: str) -> str:
    return f"a {kind} app" if kind else "the app"


def _path(network: str) -> str:
    return f"/oauth/{network}/callback"


def _leads_here(settings: Settings, network: str, address: str) -> bool:
    """Return whether this is the callback's URL, or the same URL with another loopback name."""
    if address == settings.callback_url(network):
        return True
    base, parts = urlsplit(settings.base_url), urlsplit(address)
    is_local = base.hostname in LOOPBACK and parts.hostname in LOOPBACK
    return is_local and parts.scheme == "http" and parts.port in settings.listen_ports and parts.path == _path(network)
