"""The systemd services of this installation, and the socket of the web server."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress

from socialpub.core import commands, listen
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.ops.health import Finding, note, ok, problem
from socialpub.runtime import Runtime

SERVICES = ("socialpub-web.service", "socialpub-worker.service")
SOCKET = "socialpub-web.socket"
MANY_RESTARTS = 5
ASK_SECONDS = 5.0


def check_services(rt: Runtime) -> Iterator[Finding]:
    """Check the services that run with this configuration, and the socket of the web server."""
    for service in SERVICES:
        state = ask_systemd(service)
        if state.get("LoadState") != "loaded" or f" {rt.settings.config_file} " not in state.get("ExecStart", ""):
            continue
        yield from _judge(service, state)
        held = ask_systemd(SOCKET) if service == SERVICES[0] else {}
        if held.get("ActiveState") == "active":
            yield from _compare_socket(rt.settings, [word for word in held.get("Listen", "").split() if ":" in word])


def _judge(service: str, state: dict[str, str]) -> Iterator[Finding]:
    read, active, restarts = f"Read {commands.log(service)}", state.get("ActiveState"), state.get("NRestarts") or "0"
    if active not in ("active", "activating", "reloading"):
        message = f"{service} is {active} (last result: {state.get('Result', '')})."
        yield problem("service", message, f"{read}. {commands.restart(service)}.")
    elif int(restarts) >= MANY_RESTARTS:
        message = f"systemd has restarted {service} {restarts} times since its last manual start."
        yield note("service", message, f"{read}. The log shows why the service ended.")
    else:
        yield ok("service", f"{service} is {active}.")
    if state.get("UnitFileState") == "disabled":
        message = f"{service} does not start with the machine."
        yield note("service", message, f"Run `sudo systemctl enable {service}`.")


def _compare_socket(settings: Settings, addresses: list[str]) -> Iterator[Finding]:
    with suppress(OperatorError):  # the network of this machine may be down
        if addresses and set(addresses) != set(listen.resolve_listen(settings)):
            where = " and ".join(addresses)
            message = f"systemd holds the web server's socket at {where}, but `listen` is {settings.listen}."
            yield problem("listen", message, f"{listen.move_socket()}.")


def ask_systemd(service: str) -> dict[str, str]:
    """Return the properties of a unit, or an empty dictionary without systemd."""
    names = "LoadState,ActiveState,Result,NRestarts,UnitFileState,ExecStart,Listen"
    try:
        done = subprocess.run(  # noqa: S603  # constants of ours
            ["/usr/bin/systemctl", "show", f"--property={names}", service],
            capture_output=True, text=True, timeout=ASK_SECONDS, check=False,
            env={"LANG": "C.UTF-8"},  # our own environment may contain secrets
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    properties: dict[str, str] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        # A socket with several addresses has a line for each.
        properties[name] = f"{properties[name]} {value}" if name in properties else value
    return properties
