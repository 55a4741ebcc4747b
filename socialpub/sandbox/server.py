"""The sandbox on a port.

A stop lets go of every call that hangs, so that the process always ends.
"""

import socket
from types import FrameType

import uvicorn

from socialpub.sandbox.app import create_app
from socialpub.sandbox.world import World


class Server(uvicorn.Server):
    """uvicorn, closing the world when it is told to stop."""

    def __init__(self, world: World) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(world), log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=2
            )
        )
        self.world = world
        world.serving = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.world.close()
        super().handle_exit(sig, frame)

    def stop(self) -> None:
        """End soon, asked from another thread."""
        self.world.close()
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one (`sock.getsockname()[1]` tells it)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    sock.listen(512)
    return sock


def run(world: World, sock: socket.socket) -> None:
    """Serve until a signal (in the main thread) or `Server.stop`."""
    Server(world).run(sockets=[sock])
