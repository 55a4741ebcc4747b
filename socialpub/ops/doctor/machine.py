"""Checks of the machine: clock, proxies, decoders, systemd services, and the configuration that processes run with."""

import ctypes
import json
import subprocess
from collections.abc import Iterator

from socialpub.core import commands
from socialpub.core.settings.loader import changed_keys
from socialpub.ops import health
from socialpub.ops.doctor import addresses
from socialpub.ops.health import Finding, WorkerReport, note, ok, problem
from socialpub.providers.failures import PROXY_REMEDY, find_unusable_proxies
from socialpub.runtime import Runtime

SEEN_FROM_HERE = (
    "If nothing was changed, this command has other SOCIALPUB_ variables or credentials than the running process."
)


def restart_remedy() -> str:
    return f"socialpub reads the configuration when it starts. {commands.restart()}."


def publish_configuration(rt: Runtime) -> None:
    """Publish fingerprints with which other processes compare their configuration."""
    rt.process.describe(json.dumps(rt.settings.fingerprints(rt.secrets.sign)))


def find_changed_keys(rt: Runtime) -> dict[str, list[str]]:
    """Return the keys whose values differ from those of running processes, by role (`web`, `worker`)."""
    now, found = rt.settings.fingerprints(rt.secrets.sign), dict[str, list[str]]()
    for name, described in rt.process.descriptions().items():
        changed = changed_keys(json.loads(described), now)
        if changed:
            found.setdefault(name.rpartition("-")[0], []).extend(changed)
    return found


SERVICES = ("socialpub-web.service", "socialpub-worker.service")
SOCKET = "socialpub-web.socket"
MANY_RESTARTS = 5
ASK_SECONDS = 5.0

_TIME_ERROR = 5
_TIMEX_BYTES = 1024
"""More than the size of `struct timex` on any platform."""


def check_machine(rt: Runtime) -> Iterator[Finding]:
    yield from _check_time_sync()
    report = health.read_worker_report(rt.reader)
    here = find_unusable_proxies()
    for sentence in dict.fromkeys([*here, *(report.unusable_proxies if report else ())]):
        where = "" if sentence in here else " This is the environment of the worker."
        yield problem("proxy variable", f"{sentence}{where}", PROXY_REMEDY)
    if report is not None:
        yield from _check_decoders(report)
    yield from _check_services(rt)


def _check_time_sync() -> Iterator[Finding]:
    if clock_is_kept() is False:
        message = "This machine's clock is not synchronized. A wrong clock affects signed URLs and the times of posts."
        remedy = "Turn on NTP: `sudo timedatectl set-ntp true`. In a virtual machine, use chrony."
        yield note("time sync", message, remedy)


def clock_is_kept() -> bool | None:
    """Return whether the kernel's clock is synchronized, or None if unknown."""
    try:
        # With zeros, the call only reads, so any user may make it.
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (AttributeError, OSError):
        return None
    return None if state < 0 else bool(state != _TIME_ERROR)


def _check_decoders(report: WorkerReport) -> Iterator[Finding]:
    if report.decoder_lacks is None or report.decoder_failure is not None:
        return
    if report.decoder_lacks:
        lacks = " and ".join(report.decoder_lacks)
        message = f"The kernel does not offer {lacks}. A malicious file that takes over a decoder can do more harm."
        yield note("decoder", message, "Run a kernel with Landlock and seccomp, and let the container use both.")
    else:
        yield ok("decoder", "A decoder can read one file. It cannot open sockets or start programs.")


# --- systemd ---------------------------------------------------------------------------------------------------------


def _check_services(rt: Runtime) -> Iterator[Finding]:
    """Check the services that run with this configuration, and the socket of the web server."""
    if rt.settings.config_file is None:
        return
    for service in SERVICES:
        state = ask_systemd(service)
        if state.get("LoadState") == "loaded" and f" {rt.settings.config_file} " in state.get("ExecStart", ""):
            yield from _judge(service, state)
            held = ask_systemd(SOCKET) if service == SERVICES[0] else {}
            if held.get("ActiveState") == "active":
                differs = addresses.socket_difference(rt.settings, held.get("Listen", ""))
                if differs is not None:
                    yield problem("listen", differs, f"{addresses.move_socket()}.")


def _judge(service: str, state: dict[str, str]) -> Iterator[Finding]:
    read = f"Read {commands.log(service)}"
    active = state.get("ActiveState", "")
    if active not in ("active", "activating", "reloading"):
        result = state.get("Result", "")
        why = f" ({result})" if result not in ("", "success") else ""
        yield problem("service", f"{service} is {active}{why}.", f"{read}. {commands.restart(service)}.")
    elif (restarts := state.get("NRestarts", "")).isdigit() and int(restarts) >= MANY_RESTARTS:
        message = f"systemd has restarted {service} {restarts} times since its last manual start."
        yield note("service", message, f"{read}. The log shows why the service ended.")
    else:
        yield ok("service", f"{service} is {active}.")
    if state.get("UnitFileState") == "disabled":
        message = f"{service} does not start with the machine."
        yield note("service", message, f"Run `sudo systemctl enable {service}`.")


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
    if done.returncode != 0:
        return {}
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        # A socket with several addresses has a line for each.
        found[name] = f"{found[name]} {value}" if name in found else value
    return found
