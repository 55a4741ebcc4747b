"""Whether `base_url` leads to this installation: seen from here, by asking there who answers."""

import socket
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from socialpub.core import commands
from socialpub.core.settings.loader import Settings
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.providers.errors import NotSent, ProviderError
from socialpub.providers.responses import json_object, text_at
from socialpub.runtime import Runtime

CALL_SECONDS = 10.0


class Answering(StrEnum):
    """Who answers at an address."""

    THIS = "this appliance"
    OTHER = "something else"
    NOBODY = "nobody"


def ask(rt: Runtime, base: str) -> tuple[Answering, str]:
    """Who answers at `{base}/healthz`, and how that was seen. Blocks."""
    try:
        answer = rt.http.call("GET", f"{base}/healthz", deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        return Answering.NOBODY, error.message
    except ProviderError as error:
        return Answering.OTHER, error.message
    found = text_at(json_object(answer), "instance")
    if found == rt.instance_id:
        return Answering.THIS, ""
    how = "another socialpub answers" if found else f"the answer is HTTP {answer.status} and not this appliance's"
    return Answering.OTHER, how


def local(settings: Settings) -> str:
    """The address at which the web server listens, as this machine reaches it."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.listen_host, settings.listen_host)  # noqa: S104  # nobody binds here
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.listen_port}"


def check(rt: Runtime) -> Finding:
    """One finding about the web server and the way to it."""
    settings = rt.settings
    who, how = ask(rt, settings.base_url)
    if who is Answering.THIS:
        return ok("web", f"{settings.base_url} leads here.")
    runs_here = ask(rt, local(settings))[0] is Answering.THIS
    if who is Answering.OTHER:
        message = f"{settings.base_url}/healthz does not lead here: {how}."
        remedy = f"Have it (or the proxy there) lead to {settings.listen}, or correct base_url."
        return problem("web", message, remedy if runs_here else f"{remedy} {commands.start()}.")
    if not runs_here and (elsewhere := _serves_elsewhere(rt)) is not None:
        message = f"The web server listens at {elsewhere}, and not at {settings.listen}, as `listen` says."
        return problem("web", message, f"{commands.move_socket()}.")
    if not runs_here:
        return problem(
            "web", f"The web server does not run: nothing answers at {settings.listen}.", f"{commands.start()}."
        )
    if (differ := ports_differ(settings)) is not None:
        return differ
    if is_of_this_machine(settings.base_url):
        message = f"Nothing answers at {settings.base_url}, though the web server runs at {settings.listen}."
        return problem("web", message, "Make base_url and `listen` fit each other.")
    # Many routers do not lead a machine to its own public address, though everybody else gets there.
    message = f"The web server runs, but base_url does not lead this machine to it: {how}"
    return note("web", message, f"Open {settings.base_url}/healthz from elsewhere: it must show {rt.instance_id}.")


def _serves_elsewhere(rt: Runtime) -> str | None:
    """Where the web server that started last answers, if that is not what `listen` says."""
    try:
        _, *addresses = (rt.settings.run_dir / "web.lock").read_text().partition("\n")[0].split()
    except (OSError, ValueError):
        return None
    others = (address for address in addresses if address != rt.settings.listen)
    return next((address for address in others if ask(rt, f"http://{address}")[0] is Answering.THIS), None)


def ports_differ(settings: Settings) -> Finding | None:
    """A finding when `base_url` names another port of this machine than the one listened on; a proxy there would be
    the only thing that makes it work."""
    parts = urlsplit(settings.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port == settings.listen_port or not is_of_this_machine(settings.base_url):
        return None
    return problem(
        "base_url",
        f"base_url names port {port} of this machine, but `listen` is port {settings.listen_port}: {settings.base_url} "
        "leads nowhere unless a proxy answers there.",
        f"Set both to the same port, or start the proxy that leads to {settings.listen}.",
    )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_of_this_machine(url: str) -> bool:
    """Whether the URL's host is this machine, by a loopback address or one of its own."""
    host = urlsplit(url).hostname or ""
    if is_loopback(host):
        return True
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))  # only an address of this machine can be bound
    except (ValueError, OSError):
        return False
    return True
