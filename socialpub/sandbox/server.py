"""The sandbox on a port. A stop ends every call that hangs, so that the process always ends."""

import socket
from types import FrameType

import uvicorn

from socialpub.sandbox.app import create_app
from socialpub.sandbox.world import World


class SandboxServer(uvicorn.Server):
    """uvicorn, which closes the world at a stop."""

    def __init__(self, world: World) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(world),
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=2,
                date_header=False,
            )
        )
        self.world = world
        world.serve()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.world.close()
        super().handle_exit(sig, frame)

    def stop(self) -> None:
        """Ask the server to stop, from another thread."""
        self.world.close()
        self.should_exit = True


def run(world: World, sock: socket.socket) -> None:
    """Serve until a signal (in the main thread) or `SandboxServer.stop`."""
    SandboxServer(world).run(sockets=[sock])
