"""All networks. The adapter of a network is loaded when it is used: most commands use none."""

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from socialpub.core.settings.schema import ProvidersSection

if TYPE_CHECKING:
    from socialpub.providers.base import Provider
    from socialpub.providers.options import Table

T = TypeVar("T")

LABELS = {"x": "X", "tiktok": "TikTok", "pinterest": "Pinterest", "bluesky": "Bluesky"}
"""The names for people, in display order. The adapter is the class of this name in the network's package."""
EXTENSIONS = frozenset({"bluesky"})
"""The API's specification does not have these networks. They exist only when their sections enable them."""
SPECIFIED = tuple(name for name in LABELS if name not in EXTENSIONS)
"""The networks of the API's specification. They always exist."""
DRAFT_MODES = {"tiktok": "draft"}
"""The `mode` of posts that the owner finishes in the network's own app."""


class Loaded(MutableMapping[str, T]):
    """Values by network, in display order. A value is made when it is first used."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        try:
            return self._made[name]
        except KeyError:
            return self._made.setdefault(name, self._makers[name]())

    def __setitem__(self, name: str, value: T) -> None:
        self._makers[name] = lambda: value
        self._made[name] = value

    def __delitem__(self, name: str) -> None:
        del self._makers[name]
        self._made.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def adapter(name: str) -> "type[Provider]":
    """Return the network's class."""
    network: type[Provider] = getattr(import_module(f"socialpub.providers.{name}"), LABELS[name])
    return network


def _table(name: str) -> "Table":
    return adapter(name).option_table


OPTIONS: Mapping[str, "Table"] = Loaded({name: partial(_table, name) for name in LABELS})


def build(sections: ProvidersSection, kept: Collection[str] = ()) -> "Loaded[Provider]":
    """Return the specified networks, the extension networks that their sections enable, and those in `kept`."""
    wanted = {name for name in LABELS if name not in EXTENSIONS or getattr(sections, name).is_set_up}

    def make(name: str) -> "Provider":
        # Each network takes its own section, so the classes have different signatures.
        network: Callable[..., Provider] = adapter(name)
        return network(getattr(sections, name))

    return Loaded({name: partial(make, name) for name in LABELS if name in wanted.union(kept)})
