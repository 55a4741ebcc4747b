"""A simulation of the networks: an HTTP server with memory, for the demo and for every test.

The sandbox does not import other packages of socialpub. Two independent implementations of the networks' documentation
check each other.
"""

from socialpub.sandbox.app import create_app
from socialpub.sandbox.faults import ConnectionCut, Hang
from socialpub.sandbox.world import World

__all__ = ["ConnectionCut", "Hang", "World", "create_app"]
