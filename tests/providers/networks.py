"""All networks of the grid."""

from tests.providers.grid import Network, Story
from tests.providers.stories_bluesky import BLUESKY
from tests.providers.stories_pinterest import PINTEREST
from tests.providers.stories_tiktok import TIKTOK
from tests.providers.stories_x import X

NETWORKS: dict[str, Network] = {network.name: network for network in (X, TIKTOK, PINTEREST, BLUESKY)}

STORIES: list[tuple[str, str]] = [(network.name, title) for network in NETWORKS.values() for title in network.stories]


def story_of(network: str, title: str) -> tuple[Network, Story]:
    return NETWORKS[network], NETWORKS[network].stories[title]
