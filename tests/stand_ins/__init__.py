"""The stand-ins of the networks for tests: the sandbox's networks, strict and changeable.

They check every request against the network's documentation, and behave in every way in which the real network may
behave. The sandbox of the product has what an owner tries.
"""

from tests.stand_ins.world import World

__all__ = ["World"]
