"""All networks, in display order."""

from collections.abc import Collection

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers.base import Provider
from socialpub.providers.bluesky import Bluesky
from socialpub.providers.options import Table
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.options import DRAFT
from socialpub.providers.x import X

NETWORKS: tuple[type[X] | type[TikTok] | type[Pinterest] | type[Bluesky], ...] = (X, TikTok, Pinterest, Bluesky)

SPECIFIED = tuple(network.name for network in NETWORKS if not network.is_extension)
"""The networks of the API's specification. They always exist."""
PROVIDERS = SPECIFIED
LABELS = {network.name: network.label for network in NETWORKS}
OPTIONS: dict[str, Table] = {network.name: network.option_table for network in NETWORKS}
DRAFT_MODES = {TikTok.name: DRAFT}
"""The `mode` of posts that the owner finishes in the network's own app."""


def build(sections: ProvidersSection, kept: Collection[str] = ()) -> dict[str, Provider]:
    """Return the specified networks, the extension networks that their sections enable, and those in `kept`."""
    wanted = {one.name for one in NETWORKS if not one.is_extension or getattr(sections, one.name).is_set_up}
    return {one.name: one(getattr(sections, one.name)) for one in NETWORKS if one.name in wanted.union(kept)}
