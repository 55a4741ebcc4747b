"""With which configuration the processes of this installation run.

It is read at their start, and the file may have changed since: then commands and processes disagree, about addresses
and about the app that a network knows.
"""

import json

from socialpub.core import commands
from socialpub.core.settings import fingerprints
from socialpub.runtime import Runtime

SEEN_FROM_HERE = (
    "If nothing was changed, this command was run with other SOCIALPUB_ variables or credentials than that process."
)


def restart() -> str:
    """Return what makes the processes read the configuration again."""
    return f"socialpub reads the configuration when it starts. {commands.restart()}."


def write_down(rt: Runtime) -> None:
    """Have others see with which configuration this process runs."""
    rt.process.describe(json.dumps(fingerprints.of(rt.settings, rt.secrets.sign)))


def changed_keys(rt: Runtime) -> dict[str, list[str]]:
    """The keys whose values are others here than in the processes that run, by their role (`web`, `worker`)."""
    now, found = fingerprints.of(rt.settings, rt.secrets.sign), dict[str, list[str]]()
    for name, described in rt.process.descriptions().items():
        changed = fingerprints.changed(json.loads(described), now)
        if changed:
            found.setdefault(name.rpartition("-")[0], []).extend(changed)
    return found
