"""Checks the machine: its clock, systemd's services, open files, and the configuration that processes run with."""

import ctypes
import json
import subprocess
from collections.abc import Iterator

from socialpub.core import commands, units
from socialpub.core.settings.loader import changed_keys
from socialpub.ops import health, storage
from socialpub.ops.doctor import addresses
from socialpub.ops.health import Finding, WorkerReport, note, ok, problem
from socialpub.runtime import Runtime

SEEN_FROM_HERE = (
    "If nothing was changed, this command was run with other SOCIALPUB_ variables or credentials than that process."
)


def restart_remedy() -> str:
    """Return how the processes read the configuration again."""
    return f"socialpub reads the configuration when it starts. {commands.here().restart()}."


def publish_configuration(rt: Runtime) -> None:
    """Let other processes compare their configuration with that of this one."""
    rt.process.describe(json.dumps(rt.settings.fingerprints(rt.secrets.sign)))


def find_changed_keys(rt: Runtime) -> dict[str, list[str]]:
    """Return the keys whose values differ from those of running processes, by role (`web`, `worker`)."""
    now, found = rt.settings.fingerprints(rt.secrets.sign), dict[str, list[str]]()
    for name, described in rt.process.descriptions().items():
        changed = changed_keys(json.loads(described), now)
        if changed:
            found.setdefault(name.rpartition("-")[0], []).extend(changed)
    return found


MAX_WAL_BYTES = 256_000_000
"""The journal is written back every few megabytes. It grows while something keeps reading."""
MAX_FILES_USED = 0.8
SERVICES = ("socialpub-web.service", "socialpub-worker.service")
SOCKET = "socialpub-web.socket"
MANY_RESTARTS = 5
ASK_SECONDS = 5.0

_TIME_ERROR = 5
_TIMEX_BYTES = 1024
"""More than the size of `struct timex` on any platform."""


def check_machine(rt: Runtime) -> Iterator[Finding]:
    yield from _check_time_sync()
    yield from _check_journal(rt)
    report = health.read_worker_report(rt.reader)
    if report is not None:
        yield from _check_worker_files(report)
        yield from _check_decoders(report)
    yield from _check_services(rt)


def _check_time_sync() -> Iterator[Finding]:
    if clock_is_kept() is False:
        message = "Nothing keeps this machine's clock set: it drifts, and signed addresses and posts' times with it."
        yield note(
            "time sync", message, "Switch NTP on: `sudo timedatectl set-ntp true` (in a virtual machine: chrony)."
        )


def clock_is_kept() -> bool | None:
    """Return whether the kernel's clock is synchronized, or None if it is not known."""
    try:
        # This changes nothing, so any user may call it.
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (AttributeError, OSError):
        return None
    return None if state < 0 else bool(state != _TIME_ERROR)


def _check_journal(rt: Runtime) -> Iterator[Finding]:
    journal = rt.settings.database_file.with_name(rt.settings.database_file.name + "-wal")
    size = storage.size_of(journal)
    if size > MAX_WAL_BYTES:
        message = f"{journal} has grown to {units.size(size)}: something has been reading for long, or does not end."
        look = commands.here().system_line("fuser", "-v", str(journal))
        yield note("database", message, f"See what holds it open: `{look}`. {commands.here().restart()}.")


def _check_worker_files(report: WorkerReport) -> Iterator[Finding]:
    used, most = report.figures.open_files, report.figures.most_files
    if most and used >= MAX_FILES_USED * most:
        message = f"The worker has {used} files open, and may have {most}: soon it can call no network."
        yield problem(
            "worker", message, f"{commands.here().raise_file_limit()}. {commands.here().restart('socialpub-worker')}."
        )


def _check_decoders(report: WorkerReport) -> Iterator[Finding]:
    if report.decoder_lacks is None or report.decoder_failure is not None:
        return
    if report.decoder_lacks:
        lacks = " and ".join(report.decoder_lacks)
        message = f"The kernel does not offer {lacks}, so a hostile file that takes over a decoder can do more."
        yield note("decoder", message, "Run a kernel with Landlock and seccomp, and let the container use both.")
    else:
        yield ok("decoder", "Decoders may read one file, and open no socket and start no program.")


# --- systemd ---------------------------------------------------------------------------------------------------------


def _check_services(rt: Runtime) -> Iterator[Finding]:
    """Check the services that run with this configuration."""
    if rt.settings.config_file is None:
        return
    for service in SERVICES:
        state = ask_systemd(service)
        if state.get("LoadState") == "loaded" and f" {rt.settings.config_file} " in state.get("ExecStart", ""):
            yield from _judge(service, state)
            if service == SERVICES[0]:
                yield from _check_socket(rt)


def _check_socket(rt: Runtime) -> Iterator[Finding]:
    held = ask_systemd(SOCKET)
    if held.get("ActiveState") == "active":
        differs = addresses.socket_difference(rt.settings, held.get("Listen", ""))
        if differs is not None:
            yield problem("listen", differs, f"{commands.here().move_socket()}.")


def _judge(service: str, state: dict[str, str]) -> Iterator[Finding]:
    look = f"Read {commands.here().log(service)}"
    active = state.get("ActiveState", "")
    if active not in ("active", "activating", "reloading"):
        result = state.get("Result", "")
        why = f" ({result})" if result not in ("", "success") else ""
        yield problem("service", f"{service} is {active}{why}.", f"{look}. {commands.here().restart(service)}.")
    elif (restarts := state.get("NRestarts", "")).isdigit() and int(restarts) >= MANY_RESTARTS:
        message = f"{service} was started again {restarts} times since it was last started by hand."
        yield note("service", message, f"{look}. It says why the service ended.")
    else:
        yield ok("service", f"{service} is {active}.")
    if state.get("UnitFileState") == "disabled":
        message = f"{service} does not start with the machine."
        yield note("service", message, f"Run `sudo systemctl enable {service}`.")
    if state.get("WatchdogUSec") in ("0", "infinity"):
        message = f"{service} has no watchdog: one that hangs is not started again."
        yield note("service", message, "Install the units of this version: they set WatchdogSec.")


def ask_systemd(service: str) -> dict[str, str]:
    """Return the properties of a service, or nothing without systemd."""
    names = "LoadState,ActiveState,Result,NRestarts,UnitFileState,WatchdogUSec,ExecStart,Listen"
    try:
        done = subprocess.run(  # noqa: S603  # constants of ours
            ["/usr/bin/systemctl", "show", f"--property={names}", service],
            capture_output=True, text=True, timeout=ASK_SECONDS, check=False,
            env={"LANG": "C.UTF-8"},  # ours may hold secrets
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
