"""All networks, in display order."""

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers.base import Provider
from socialpub.providers.options import Table
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.options import DRAFT
from socialpub.providers.x import X

NETWORKS: tuple[type[X] | type[TikTok] | type[Pinterest], ...] = (X, TikTok, Pinterest)

PROVIDERS = tuple(network.name for network in NETWORKS)
LABELS = {network.name: network.label for network in NETWORKS}
OPTIONS: dict[str, Table] = {network.name: network.option_table for network in NETWORKS}
DRAFT_MODES = {TikTok.name: DRAFT}
"""The `mode` of posts that the owner finishes in the network's own app."""


def build(sections: ProvidersSection) -> dict[str, Provider]:
    return {network.name: network(getattr(sections, network.name)) for network in NETWORKS}
