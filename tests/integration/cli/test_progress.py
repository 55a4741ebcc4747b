"""Long commands show their progress on standard error, and never change standard output."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from socialpub.cli import output
from socialpub.db import backup_format, file_check

ESCAPE = "\x1b"


def in_pseudo_terminal(*arguments: str) -> tuple[int, str, str]:
    """Run a command whose standard error is a terminal. Return its exit code, its output and what the terminal got."""
    ours, its = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    for name in ("NO_COLOR", "CI", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environ.pop(name, None)
    command = subprocess.Popen(
        [sys.executable, "-m", "socialpub", *arguments], env=environ, stdout=subprocess.PIPE, stderr=its, text=True
    )
    os.close(its)
    shown = bytearray()
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    os.close(ours)
    out, _ = command.communicate()
    return command.returncode, out, shown.decode()


def test_on_a_terminal_doctor_shows_a_bar_beside_the_same_findings(terminal):
    terminal.connect()
    config = str(terminal.config)
    quiet = subprocess.run(
        [sys.executable, "-m", "socialpub", "--config", config, "doctor", "--json"], capture_output=True, text=True
    )
    code, out, shown = in_pseudo_terminal("--config", config, "doctor", "--json")
    assert code == quiet.returncode == 1
    assert "Reading the database" in shown and "Checking the database" in shown and ESCAPE in shown
    assert ESCAPE not in out
    assert [one["subject"] for one in json.loads(out)] == [one["subject"] for one in json.loads(quiet.stdout)]
    assert shown.endswith(quiet.stderr.replace("\n", "\r\n"))


def test_without_a_terminal_a_long_backup_prints_plain_lines(terminal, monkeypatch):
    terminal.connect()
    short = terminal("backup").stderr
    assert "Copying" not in short, "a line is due every 30 seconds"
    monkeypatch.setattr(output, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(backup_format, "STEP_PAGES", 10)
    monkeypatch.setattr(file_check, "STEPS", 1000)
    shown = terminal.success("backup")
    assert all(line.isprintable() for line in shown.stderr.splitlines()), shown.stderr
    assert "%" not in shown.stdout and ESCAPE not in shown.stdout
    assert "\nCopying the database: 100 %, " in shown.stderr


def test_ctrl_c_ends_a_long_command_with_one_line(terminal, monkeypatch):
    terminal.connect()

    def press(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file_check, "read_ahead", press)
    stopped = terminal("doctor")
    assert (stopped.exit_code, stopped.stdout, stopped.stderr.strip()) == (1, "", "Aborted!")
