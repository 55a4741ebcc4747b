"""All networks, in the order in which they are shown."""

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers.base import Provider
from socialpub.providers.options import Table
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.options import DRAFT
from socialpub.providers.x import X

NETWORKS: tuple[type[X] | type[TikTok] | type[Pinterest], ...] = (X, TikTok, Pinterest)

PROVIDERS = tuple(network.name for network in NETWORKS)
"""Their names in the API."""
LABELS = {network.name: network.label for network in NETWORKS}
"""Their names as people write them."""
OPTIONS: dict[str, Table] = {network.name: network.option_table for network in NETWORKS}
DRAFT_MODES = {TikTok.name: DRAFT}
"""The `mode` of posts that end in the network's own app, where the owner finishes them."""


def build(sections: ProvidersSection) -> dict[str, Provider]:
    """Return every network by its name in the API, from its section of the configuration."""
    return {network.name: network(getattr(sections, network.name)) for network in NETWORKS}
