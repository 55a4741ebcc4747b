"""An application on a port of this machine, for browsers that do not run in the test's own process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from socialpub.web.http.app import App


@contextmanager
def served(app: App) -> Iterator[str]:
    """Where it answers: `http://127.0.0.1:…`."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
