"""podman with a storage of its own, which goes with the test; what `compose.yaml` asks for, as its options."""

import json
import os
import resource
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "systemd" / "container" / "compose.yaml"
# The controllers of an old hierarchy beside the new one are more than crun wants to see; a namespace shows it one.
_ONE_HIERARCHY = 'umount -R -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'


def why_impossible() -> str | None:
    if shutil.which("podman") is None:
        return "podman is not installed"
    if os.geteuid() != 0:
        return "only root can run containers without the set-up of subordinate users"
    return None


class Podman:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._words = ["podman", "--root", str(folder / "storage"), "--runroot", str(folder / "run")]
        self._words += ["--cgroup-manager", "cgroupfs"]
        if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
            self._words = ["unshare", "--mount", "sh", "-c", _ONE_HIERARCHY, "sh", *self._words]

    def try_to(self, *words: str, stdin: Any = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._words, *words], stdin=stdin, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT
        )

    def as_builder(self, *options: str) -> Path:
        """Return a program `podman` with this storage, which builds with these options."""
        program = self.folder / "podman"
        build = shlex.join(["build", *options])
        program.write_text(
            f'#!/bin/sh\n[ "$1" = build ] && shift && set -- {build} "$@"\nexec {shlex.join(self._words)} "$@"\n'
        )
        program.chmod(0o755)
        return program

    def run(self, *words: str, stdin: Any = None) -> str:
        done = self.try_to(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def log(self, name: str) -> str:
        done = self.try_to("logs", name)
        return done.stdout + done.stderr

    def state(self, name: str) -> dict[str, Any]:
        (found,) = json.loads(self.run("inspect", name))
        return found["State"]


def options_here() -> list[str]:
    """Further flags: this machine cannot grant rights that it lacks, or own networks."""
    files, processes = resource.getrlimit(resource.RLIMIT_NOFILE)[1], resource.getrlimit(resource.RLIMIT_NPROC)[1]
    limits = [f"nofile={min(files, 4096)}", f"nproc={min(processes, 4096) if processes > 0 else 4096}"]
    return ["--cgroups=disabled", "--network=host", *(word for limit in limits for word in ("--ulimit", limit))]


def service() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]["socialpub"]
    return found


def options_of_compose() -> list[str]:
    """How `compose.yaml` confines it. A key that is not known here must be given its place."""
    found, asked = [], service()
    elsewhere = {"image", "build", "restart", "ports", "volumes", "environment", "init", "mem_limit", "pids_limit"}
    for key in set(asked) - elsewhere:
        match key, asked[key]:
            case "read_only", True:
                found.append("--read-only")
            case "tmpfs", folders:
                found += [f"--tmpfs={folder}" for folder in folders]
            case "cap_drop", rights:
                found += [f"--cap-drop={right.lower()}" for right in rights]
            case "security_opt", settings:
                found += [f"--security-opt={setting.replace(':true', '')}" for setting in settings]
            case "stop_grace_period", seconds:
                found.append(f"--stop-timeout={seconds.removesuffix('s')}")
            case _:
                raise AssertionError(f"compose.yaml has {key}, and no test plays it")
    return found
