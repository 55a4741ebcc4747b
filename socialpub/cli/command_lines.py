"""Commands inside sentences, as they must be typed where they are read.

Whoever ran a command with --config has to run the next one with it, too: another configuration would be used else.
"""

import os
import shlex
from pathlib import Path

import click

WITHOUT_CONFIGURATION = {"config", "demo", "sandbox"}
"""These commands are told without it: what they do, or print when they are named in a sentence, needs none."""


def typed_here(text: str) -> str:
    """The sentence with the --config that this command was given, wherever it names a command of socialpub."""
    context = click.get_current_context(silent=True)
    if context is None:
        return text
    root = context.find_root()
    config: Path | None = root.params.get("config")
    if config is None or not isinstance(root.command, click.Group):
        return text
    if not _is_there(config) or _is_found_anyway(config):
        return text
    for name in set(root.command.list_commands(root)) - WITHOUT_CONFIGURATION:
        text = text.replace(f"socialpub {name}", f"socialpub --config {shlex.quote(str(config))} {name}")
    return text


def _is_found_anyway(config: Path) -> bool:
    """Whether a command without --config would use this very file."""
    # Every command has this module, and `socialpub --help` must not wait for pydantic.
    from socialpub.core.settings import env, loader

    named = os.environ.get(env.FILE_VARIABLE)
    candidates = (Path(named),) if named else loader.USUAL_FILES
    found = next(filter(_is_there, candidates), None)
    return found is not None and found.samefile(config)


def _is_there(file: Path) -> bool:
    """Without an error where this user may not look, such as in root's home, where `sudo` was typed."""
    return os.path.exists(file)  # noqa: PTH110  # a Path's own raises then
