"""The networks that there are, each built from its section of the configuration.

A network that is not in here does not exist for the rest of the house.
"""

from socialpub.core.settings.sections import ProvidersSection
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.protocol import Provider
from socialpub.providers.tiktok import TikTok
from socialpub.providers.x import X


def build(sections: ProvidersSection) -> dict[str, Provider]:
    """Every network by its name in the API."""
    networks: tuple[Provider, ...] = (X(sections.x), TikTok(sections.tiktok), Pinterest(sections.pinterest))
    return {network.name: network for network in networks}
