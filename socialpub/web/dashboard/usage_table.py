"""What keys and networks used, as rows of a table: today and within a week (days of UTC)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from socialpub.accounts.api_keys import Key
from socialpub.accounts.usage import DayUsage
from socialpub.providers.protocol import Provider

DAYS = 7


@dataclass(frozen=True, slots=True)
class KeyUse:
    name: str
    today: int
    week: int


@dataclass(frozen=True, slots=True)
class NetworkUse:
    """`calls` and outcomes: today, and within a week."""

    label: str
    calls: tuple[int, int]
    published: tuple[int, int]
    failed: tuple[int, int]
    """Also those whose outcome is not known."""


@dataclass(frozen=True, slots=True)
class UsageTable:
    keys: list[KeyUse]
    networks: list[NetworkUse]


def build(days: Sequence[DayUsage], keys: Collection[Key], providers: Mapping[str, Provider]) -> UsageTable:
    """`days` newest first. Keys and networks that were not used are left out."""
    names = {key.id: key.name for key in keys}
    used_keys = list(dict.fromkeys(key_id for day in days for key_id in day.requests))
    of_keys = [
        KeyUse(names.get(key_id, key_id), *_sums([day.requests.get(key_id, 0) for day in days])) for key_id in used_keys
    ]
    networks = []
    for name, provider in providers.items():
        use = NetworkUse(
            provider.label,
            _sums([day.calls.get(name, 0) for day in days]),
            _sums([day.ended.get((name, "published"), 0) for day in days]),
            _sums([sum(day.ended.get((name, outcome), 0) for outcome in ("failed", "unknown")) for day in days]),
        )
        if any((*use.calls, *use.published, *use.failed)):
            networks.append(use)
    return UsageTable(sorted(of_keys, key=lambda use: (-use.week, use.name)), networks)


def _sums(counts: Sequence[int]) -> tuple[int, int]:
    return counts[0], sum(counts)
