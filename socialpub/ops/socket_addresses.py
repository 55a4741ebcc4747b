"""Where systemd holds the web server's socket open, compared with what `listen` in the configuration says.

systemd reads addresses and knows no names: a name in `listen` is looked up when the units are written.
"""

import socket

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings


def wanted(settings: Settings) -> list[str]:
    """What `listen` stands for, as systemd writes it. Raises OperatorError."""
    host, port = settings.listen_host, settings.listen_port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OperatorError(
            f"The address of `listen` = {settings.listen!r} is not known: {error.strerror}.",
            "Set `listen` to an address of this machine, such as 127.0.0.1:8000.",
        ) from error
    return list(dict.fromkeys(_written(family, str(address[0]), port) for family, *_, address in found))


def difference(settings: Settings, held: str) -> str | None:
    """A sentence when the socket is elsewhere; `held` is what systemd says, such as `127.0.0.1:8000 (Stream)`."""
    addresses = [word for word in held.split() if ":" in word]
    try:
        if not addresses or set(addresses) == set(wanted(settings)):
            return None
    except OperatorError:
        return None  # the network of this machine may be down for the moment
    where = " and ".join(addresses)
    return f"systemd holds the web server's socket at {where}, while `listen` says {settings.listen}."


def _written(family: int, host: str, port: int) -> str:
    return f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
