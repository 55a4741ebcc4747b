"""The addresses at which the web server listens, as the machine resolves `listen`."""

import socket
from typing import Any

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.sd_notify import format_host
from socialpub.core.settings.loader import Settings, find_overlap


def find_sockets(settings: Settings) -> list[tuple[Any, ...]]:
    """Return what `socket.getaddrinfo` returns for `listen`. Raises OSError, and OperatorError if two are the same."""
    sockets = [
        info
        for host, port in settings.listen_addresses
        for info in dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))
    ]
    if (overlap := find_overlap(format_host(*info[4][:2]) for info in sockets)) is not None:
        raise OperatorError(f"`listen` = {settings.listen!r} cannot be used: {overlap}.", "Remove one of the two.")
    return sockets


def resolve_listen(settings: Settings) -> list[str]:
    """Return the addresses of `listen` in systemd's notation. Raises OperatorError."""
    try:
        return [format_host(*info[4][:2]) for info in find_sockets(settings)]
    except OSError as error:
        raise OperatorError(
            f"The address of `listen` = {settings.listen!r} cannot be resolved: {error.strerror}.",
            "Set `listen` to an IP address and port of this machine, such as 127.0.0.1:8000.",
        ) from error


def move_socket() -> str:
    """Return the instruction that applies a changed `listen`."""
    if not commands.is_service():
        return commands.restart()
    unit = f"/usr/local/lib/systemd/system/{commands.UNITS[0]}"
    write = f"{commands.line('config', '--unit', 'socket')} | sudo tee {unit}"
    return f"Run `{write} && sudo systemctl daemon-reload`. {commands.restart(*commands.UNITS)}"
