"""The redirect address of a network: whether the network accepts it, whether the browser comes back here by itself, and
what the owner pastes otherwise.

The address in the consent page's URL, in the token call and at the app's page must be the same, letter by letter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.networks import LOOPBACK, NetworkSection
from socialpub.providers.protocol import Provider

DEFAULT_PORTS = {"http": 80, "https": 443}
COPY_IT = "Copy the whole address from the browser's address bar, after you have given your consent."


class WrongAddress(OperatorError):
    """The pasted text is not the address at which this attempt ended. Nothing was used up."""


@dataclass(frozen=True, slots=True)
class RedirectFinding:
    """What the network's own rule says about its redirect address."""

    address: str
    app_kind: str
    """The kind of app to register, such as `desktop`; empty where the network has one kind."""
    sentence: str
    change: str | None = None
    """What to change in the configuration; None when the network accepts the address."""
    pasted: bool = False
    """Whether the browser does not come back by itself after that change."""

    @property
    def remedy(self) -> str | None:
        """The change, and what follows it."""
        if self.change is None:
            return None
        paste = " If your browser shows an error after your consent, paste the address at which it ended."
        return f"{self.change} {commands.restart()}.{paste if self.pasted else ''}"


def check(settings: Settings, provider: Provider) -> RedirectFinding | None:
    """Compare the redirect address with the network's rule. None: a stand-in such as the sandbox accepts any."""
    name, label, rules = provider.name, provider.label, provider.oauth.redirect_rules
    section: NetworkSection = getattr(settings.providers, name)
    if section.is_stand_in:
        return None
    address = settings.redirect_url(name)
    row = rules.find(address)
    if row is not None:
        sentence = f"{label}: register the redirect address {address} with {_app(row.app)}."
        return RedirectFinding(address, row.app, sentence)
    better = settings.callback_url(name)
    change = f"Remove redirect_url from [providers.{name}]"
    if rules.find(better) is None:
        better = rules.local(settings.listen_port, _path(name)) or better
        change = f'Set redirect_url = "{better}" in [providers.{name}]'
    fits = rules.find(better)
    kind = fits.app if fits else ""
    sentence = f"{label} does not accept the redirect address {address}. It accepts {rules.sentence}."
    change += f" and register {better} with {_app(kind)}."
    return RedirectFinding(address, kind, sentence, change, pasted=not _leads_here(settings, name, better))


def comes_back(settings: Settings, network: str) -> bool:
    """Whether the network sends the browser to this appliance, as far as the configuration shows it."""
    return _leads_here(settings, network, settings.redirect_url(network))


def read_answer(text: str, redirect_uri: str) -> Mapping[str, str]:
    """Return the query of a pasted address: the whole address, or only what follows the question mark.

    Raises WrongAddress for an address of another host or path than `redirect_uri`, and for text that is none.
    """
    text = text.strip().strip("\"'<>").partition("#")[0]
    try:
        place, query = _place(text) if "?" in text else (None, text)
        found = dict(parse_qsl(query, keep_blank_values=True))
    except ValueError:
        place, found = None, {}
    if "code" not in found and "error" not in found:
        raise WrongAddress(
            "This is not the address that the browser ended at: it has neither code= nor error= in it.", COPY_IT
        )
    if place not in (None, _place(redirect_uri)[0]):
        raise WrongAddress(f"This is not the redirect address of this attempt, which is {redirect_uri}.", COPY_IT)
    return found


def _place(address: str) -> tuple[tuple[str, str] | None, str]:
    """Host and path of an address, and its query. Browsers hide the scheme, and change it; so it does not count."""
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
    """The callback's own address, or another loopback name of it."""
    if address == settings.callback_url(network):
        return True
    base, parts = urlsplit(settings.base_url), urlsplit(address)
    is_local = base.hostname in LOOPBACK and parts.hostname in LOOPBACK
    return is_local and parts.scheme == "http" and parts.port == settings.listen_port and parts.path == _path(network)
