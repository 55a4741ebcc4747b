"""Free ports for servers that tests start."""

import itertools
import os
import socket

_FIRST, _COUNT = 20_000, 10_000
"""Below the ports that the system gives to outgoing connections, so that no connection takes a port that was free."""

_offsets = itertools.count(os.getpid() * 1009)
"""Each process begins at its own place, so that parallel tests rarely try the same port."""


def free_port() -> int:
    """Return a port of 127.0.0.1 on which no server listens. A process never gets the same port twice in a row."""
    while True:
        port = _FIRST + next(_offsets) % _COUNT
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
