"""A machine to install things on: this one, in a mount namespace whose changes vanish with it.

A script records its systemctl commands, because this machine's systemd must not change; `tests/endurance/` plays the
units themselves elsewhere.
"""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

WHEELS = Path(__file__).parents[2] / ".venv" / "wheelhouse"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
"""pip installs what `make endurance` has fetched: these machines have no network."""
CHANGED = ("/etc", "/home", "/opt", "/usr", "/var")
_BEGIN = """
set -e
mount -t tmpfs none "$1"
shift
for folder in "$@"; do
    mkdir -p "$OLDPWD$folder/upper" "$OLDPWD$folder/work"
    mount -t overlay -o "lowerdir=$folder,upperdir=$OLDPWD$folder/upper,workdir=$OLDPWD$folder/work" none "$folder"
done
mkdir -p /run/systemd/system
echo ready
exec sleep infinity
"""
_SYSTEMCTL = r"""#!/bin/sh
echo "$*" >> /var/systemctl.log
case "$1" in
is-active) grep -qx "$3" /var/running ;;
esac
"""


class Machine:
    """`root` is its root folder, seen from here."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir()
        self._process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _BEGIN.replace("$OLDPWD", str(scratch)), "sh", str(scratch), *CHANGED],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout
        assert self._process.stderr
        if self._process.stdout.readline() != "ready\n":
            why = self._process.stderr.read()
            self._process.wait()
            raise OSError(why)
        self.root = Path(f"/proc/{self._process.pid}/root")
        systemctl = self.root / "usr/bin/systemctl"
        systemctl.unlink(missing_ok=True)
        systemctl.write_text(_SYSTEMCTL)
        systemctl.chmod(0o755)
        self.runs()

    def runs(self, *units: str) -> None:
        """Have systemd say that these are active."""
        (self.root / "var/running").write_text("".join(f"{unit}\n" for unit in units))

    def told_systemd(self) -> list[str]:
        """Return the commands to systemd since the last call, without queries."""
        log = self.root / "var/systemctl.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line for line in lines if not line.startswith("is-")]

    def try_to(
        self, *command: str | Path, hidden: tuple[str, ...] = (), **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command as root, in a clean environment. `hidden` folders are empty for it, as a unit has them."""
        words = [*map(str, command)]
        if hidden:
            masks = "; ".join(f"mount -t tmpfs none {folder}" for folder in hidden)
            words = ["unshare", "--mount", "sh", "-c", f'{masks}; exec "$@"', "sh", *words]
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
        env |= OFFLINE | environ
        return subprocess.run(
            ["nsenter", "--mount", "--target", str(self._process.pid), "--wd=/", *words],
            env=env, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    def run(self, *command: str | Path, hidden: tuple[str, ...] = ()) -> str:
        done = self.try_to(*command, hidden=hidden)
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def owner(self, path: str) -> str:
        """`root:socialpub 640`, by the machine's own names."""
        return self.run("stat", "--format", "%U:%G %a", path).strip()

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()


def why_impossible() -> str | None:
    """Why no such machine can be made here."""
    needed = ("unshare", "nsenter", "setpriv", "systemd-sysusers", "make")
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        return f"there is no {missing[0]}"
    if not (WHEELS / ".ready").exists():
        return f"{WHEELS} has no packages: make endurance fetches them"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() or "mounts are not allowed" if tried.returncode else None
