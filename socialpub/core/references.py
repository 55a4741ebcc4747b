"""References to accounts: what people and agents type instead of a profile's id. The HTTP API accepts only ids."""

from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

MAX_CANDIDATES = 20

Profile = Mapping[str, Any]
"""A profile in the API's form (specification 2.1)."""


class UnknownReference(Exception):
    """The reference names no account, or several. The message lists the candidates."""


def find_profile(reference: str, profiles: Sequence[Profile]) -> Profile:
    """Return the profile that the reference names (contract 10.5.1). Raises UnknownReference.

    A disconnected profile answers only to its id, so that it does not make a network's name ambiguous.
    """
    wanted = _fold(reference)
    matches = [profile for profile in profiles if wanted == profile["id"]]
    connected = [profile for profile in profiles if profile["status"] != "disconnected"]
    matches = matches or [profile for profile in connected if wanted in _references(profile)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownReference(f"“{reference}” names {len(matches)} accounts. Use the id of one: {_list(matches)}.")
    if connected:
        raise UnknownReference(f"“{reference}” names no account. Use one of: {_list(connected)}.")
    raise UnknownReference(
        f"“{reference}” names no account. The key sees none: connect an account, or use a key with a wider scope."
    )


def clearest_reference(profile: Profile) -> str:
    """Return the reference that people recognize: `x:Acme`."""
    return f"{profile['provider']}:{profile['name']}"


def _references(profile: Profile) -> set[str]:
    names = {profile["provider"], profile["name"], clearest_reference(profile)}
    if "username" in profile:
        names.add(f"@{profile['username'].removeprefix('@')}")
    return set(map(_fold, names))


def _fold(text: str) -> str:
    return normalize("NFC", normalize("NFC", text).casefold()).strip()


def _list(profiles: Sequence[Profile]) -> str:
    candidates = [
        f"{clearest_reference(profile)}{_username(profile)} = {profile['id']}" for profile in profiles[:MAX_CANDIDATES]
    ]
    if len(profiles) > MAX_CANDIDATES:
        candidates.append(f"and {len(profiles) - MAX_CANDIDATES} more")
    return ", ".join(candidates)


def _username(profile: Profile) -> str:
    return f" (@{profile['username'].removeprefix('@')})" if "username" in profile else ""
