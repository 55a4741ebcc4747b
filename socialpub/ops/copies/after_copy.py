"""The command that takes a copy elsewhere: run after each scheduled one, without a shell, and ended when it takes long.

Its failure is the copy's: who set it up has no copy where it counts. What it wrote at the end is told, without secrets.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from socialpub.core import commands, durations
from socialpub.core.commands import CONFIG_VARIABLE
from socialpub.core.errors import OperatorError
from socialpub.core.redaction import redact
from socialpub.core.settings.backup_section import PLACE, BackupSection
from socialpub.core.settings.env import COPY_VARIABLE, PREFIX
from socialpub.core.visible_text import visible

END_SECONDS = 10.0
_MOST_OUTPUT = 600
"""Characters of its output that are told: half of them from its beginning, where restic and rclone say why."""


def run(settings: BackupSection, copy: Path) -> None:
    """Run `[backup] after` for this copy, and wait for its end. Raises OperatorError when it fails."""
    command = [part.replace(PLACE, str(copy)) for part in settings.after]
    # Our own settings are not its business, and some of them are secrets; where they stand it may need to know.
    inherited = {
        name: os.environ[name] for name in os.environ if name == CONFIG_VARIABLE or not name.startswith(PREFIX)
    }
    with tempfile.TemporaryFile() as output:
        try:
            code = _run(command, inherited | {COPY_VARIABLE: str(copy)}, output, settings.after_timeout.total_seconds())
        except OSError as error:
            raise _failed(copy, f"{command[0]!r} cannot be run: {error.strerror}", output) from None
        if code is None:
            raise _failed(copy, f"it took longer than {durations.write(settings.after_timeout)}", output)
        if code != 0:
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            raise _failed(copy, how, output)


def _run(command: Sequence[str], environment: dict[str, str], output: IO[bytes], seconds: float) -> int | None:
    """The exit code; None when it took too long."""
    process = subprocess.Popen(  # noqa: S603  the owner's own words
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,  # it ends with everything that it started
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failed(copy: Path, how: str, output: IO[bytes]) -> OperatorError:
    text = _readable(output, 0)
    if len(text) > _MOST_OUTPUT:
        half = _MOST_OUTPUT // 2
        size = output.seek(0, os.SEEK_END)
        text = f"{text[:half]} … {_readable(output, max(0, size - 4 * _MOST_OUTPUT))[-half:]}"
    said = f" It said: {text}" if text else ""
    return OperatorError(
        f"The backup is in {copy}, but the command after it (backup.after) failed: {how}.{said}",
        f"Fix the cause, then run `{commands.line('backup')}` again.",
    )


def _readable(output: IO[bytes], start: int) -> str:
    """From there, as much as can be told at most."""
    output.seek(start)
    return visible(redact(output.read(4 * _MOST_OUTPUT + 4).decode("utf-8", "replace")), keep="\n").strip()
