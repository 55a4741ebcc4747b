"""A machine with systemd as its first process, over this one's own files: what it writes is gone when it ends.

It has a network of its own, which the test shares as long as the machine runs, so that no port is anybody else's.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.e2e.processes import until
from tests.endurance.machine import OFFLINE, WHEELS

CLONE_NEWNET = 0x40000000
CGROUPS = Path("/sys/fs/cgroup")

BOOT = """
set -e
for tree in {trees}; do mkdir "$tree"; echo $$ > "$tree/cgroup.procs"; done
mount -t tmpfs machine {folder}/memory
cd {folder}/memory
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
exec systemd-nspawn --quiet --directory={folder}/memory/root --boot --register=no --keep-unit --machine={name} \\
    --link-journal=no --console=pipe --system-call-filter={landlock} {bound} systemd.unit=basic.target
"""
CHECKOUT = Path(__file__).parents[3]


def lacking(*programs: str) -> str | None:
    """What this machine lacks for it, and for a story that types these programs; None when it has all."""
    if os.geteuid() != 0:
        return "only root can boot a machine"
    needed = ("systemd-nspawn", "unshare", "nsenter", "ip", *programs)
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    return None if (WHEELS / ".ready").exists() else f"{WHEELS} has no packages: make endurance fetches them"


_numbers = count(1)
"""A machine that ends badly leaves its name occupied."""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.name = f"socialpub-{os.getpid()}-{next(_numbers)}"
        self._folder = folder
        self._log = folder / "console.log"
        (folder / "memory").mkdir()
        trees = [CGROUPS] if (CGROUPS / "cgroup.procs").exists() else [CGROUPS / "unified", CGROUPS / "systemd"]
        self._trees = [tree / self.name for tree in trees if tree.exists()]
        self._init = 0

    def boot(self) -> None:
        script = BOOT.format(
            folder=self._folder,
            name=self.name,
            # nspawn refuses these calls by itself; a real machine does not.
            landlock="'landlock_create_ruleset landlock_add_rule landlock_restrict_self'",
            trees=" ".join(map(str, self._trees)),
            # A machine begins with an empty /tmp.
            bound=f"--bind-ro={CHECKOUT}" if CHECKOUT.is_relative_to("/tmp") else "",
        )
        with self._log.open("wb") as log:
            self._nspawn = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "bash", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._is_up, f"systemd is up: {self._log.read_text(errors='replace')}", 60)

    def _is_up(self) -> bool:
        assert self._nspawn.poll() is None, f"it did not boot:\n{self._log.read_text(errors='replace')}"
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
        if not children:
            return False
        self._init = int(children[0])
        try:
            if Path(f"/proc/{self._init}/comm").read_text().strip() != "systemd":
                return False
        except (FileNotFoundError, ProcessLookupError):  # a helper of nspawn, which has ended
            return False
        return self.run("systemctl", "is-system-running", code=None).stdout.strip() in ("running", "degraded")

    def run(self, *command: str, code: int | None = 0, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command as root in the machine. It must end with `code`, None: with any code."""
        done = subprocess.run(
            ["nsenter", f"--target={self._init}", "--all", "--", *command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"} | OFFLINE,
        )
        assert code is None or done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def show(self, unit: str, name: str) -> str:
        """A property of a unit, as `systemctl show` has it."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def journal(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}").stdout

    def close(self) -> None:
        if self._init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init, signal.SIGRTMIN + 4)  # power off
        try:
            self._nspawn.wait(60)
        except subprocess.TimeoutExpired:
            # The first process takes the others of its machine with it.
            for pid in filter(None, (self._init, self._nspawn.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._nspawn.wait(60)
        for tree in self._trees:
            if (kill := tree / "cgroup.kill").exists():
                kill.write_text("1")
            for group in sorted(tree.rglob("*/"), reverse=True):
                with contextlib.suppress(OSError):
                    group.rmdir()
            with contextlib.suppress(OSError):
                tree.rmdir()


@contextmanager
def own_network() -> Iterator[None]:
    """This thread, and what it starts, have a network with nothing but themselves in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield
    finally:
        assert libc.setns(before, CLONE_NEWNET) == 0
        os.close(before)
