"""Where the web server listens: over the sockets that systemd holds open for it, else over its own.

A socket that systemd holds outlives us: who connects while no process is up waits in it. So nothing here may shut one
down; our copy is closed, and that is all.
"""

import errno
import socket
from typing import Any

from socialpub.core import commands, logging
from socialpub.core.errors import OperatorError
from socialpub.core.service_manager import written
from socialpub.core.settings.loader import Settings
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.web.server")

BACKLOG = 2048


def open_for(rt: Runtime) -> list[socket.socket]:
    """The listening sockets. Raises OperatorError when they cannot be used."""
    descriptors = rt.service_manager.descriptors
    if not descriptors:
        return bind(rt.settings)
    sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    if not all(map(_listens_for_tcp, sockets)):
        for listener in sockets:
            listener.close()
        raise OperatorError(
            "The socket that systemd handed over is none that listens for TCP connections.",
            "Set ListenStream= in socialpub-web.socket to an address and port, such as 127.0.0.1:8000; no Accept=yes.",
        )
    for listener in sockets:
        listener.setblocking(False)
    if not _is_configured(sockets, rt.settings):
        log.warning(
            "systemd's socket counts, and its address is not `listen`",
            remedy=f"{commands.move_socket()}.",
            address=addresses(sockets),
            listen=rt.settings.listen,
        )
    return sockets


def _is_configured(sockets: list[socket.socket], settings: Settings) -> bool:
    """Whether these are the addresses that `listen` stands for, as far as that is known."""
    try:
        configured = {address[:2] for *_, address in _resolve(settings)}
    except OSError:
        return False
    return {listener.getsockname()[:2] for listener in sockets} == configured


def addresses(sockets: list[socket.socket]) -> str:
    """`127.0.0.1:8000`, as `listen` is written; several are separated by commas."""
    return ", ".join(map(written, sockets))


def _listens_for_tcp(listener: socket.socket) -> bool:
    return (
        listener.family in (socket.AF_INET, socket.AF_INET6)
        and listener.type == socket.SOCK_STREAM
        and bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    )


def bind(settings: Settings) -> list[socket.socket]:
    """The listening sockets of `listen`: one per address that the host name stands for. Raises OperatorError."""
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in _resolve(settings):
            listener = socket.socket(family, kind, protocol)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # 0.0.0.0 and :: may both be asked for; without this the second would find the port taken.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise _cannot_listen(settings.listen, error) from error
    return sockets


def _resolve(settings: Settings) -> list[tuple[Any, ...]]:
    host, port = settings.listen_host, settings.listen_port
    return list(dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)))


def _cannot_listen(address: str, error: OSError) -> OperatorError:
    if error.errno == errno.EADDRINUSE:
        return OperatorError(
            f"{address} is in use by another program.",
            "Stop that program (perhaps another socialpub), or set `listen` to another port.",
        )
    if error.errno == errno.EACCES:
        return OperatorError(
            f"{address} may not be used by this user.",
            "Set `listen` to a port above 1023 and let a proxy listen on the lower one.",
        )
    return OperatorError(
        f"{address} cannot be listened on: {error.strerror or error}.",
        "Set `listen` to an address of this machine, such as 127.0.0.1:8000.",
    )
