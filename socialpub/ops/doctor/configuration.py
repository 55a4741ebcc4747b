"""The configuration that running processes use, compared with the configuration of this one."""

import json
from collections.abc import Iterator

from socialpub.core import commands
from socialpub.core.settings.loader import changed_keys
from socialpub.ops.health import Finding, problem
from socialpub.runtime import Runtime


def publish_configuration(rt: Runtime) -> None:
    """Publish fingerprints with which other processes compare their configuration."""
    rt.process.describe(json.dumps(rt.settings.fingerprints(rt.secrets.sign)))


def find_changed_keys(rt: Runtime) -> dict[str, list[str]]:
    """Return the keys whose values differ from those of running processes, by role (`web`, `worker`)."""
    now, changed = rt.settings.fingerprints(rt.secrets.sign), dict[str, list[str]]()
    for name, described in rt.process.descriptions().items():
        if keys := changed_keys(json.loads(described), now):
            changed.setdefault(name.rpartition("-")[0], []).extend(keys)
    return changed


def restart_remedy() -> str:
    return (
        f"socialpub reads the configuration when it starts. {commands.restart()}. If nothing was changed, this command "
        "has other SOCIALPUB_ variables or credentials than the running process."
    )


def check_in_use(rt: Runtime) -> Iterator[Finding]:
    changed = find_changed_keys(rt)
    if changed:
        keys = dict.fromkeys(key for of_role in changed.values() for key in of_role)
        names = " and the ".join("web server" if role == "web" else role for role in changed)
        are = "are" if len(changed) > 1 else "is"
        yield problem(
            "configuration",
            f"{rt.settings.config_file} has changed. The {names} {are} still running with earlier values of "
            f"{', '.join(keys)}.",
            restart_remedy(),
        )
