"""The first thing anybody tries."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def demo(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "socialpub", "demo", "--once", "--folder", str(folder)],
        env={name: value for name, value in os.environ.items() if not name.startswith("SOCIALPUB_")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("number", ["once", "again"])
def test_the_demo_publishes_and_says_where_to_look(tmp_path_factory: pytest.TempPathFactory, number: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "demo"
    done = demo(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "published" in done.stdout
    assert re.search(r"http://127\.0\.0\.1:\d+/x/demo/status/\d+", done.stdout), done.stdout
    assert re.search(r"spk_\w+", done.stdout)
    assert "Traceback" not in done.stderr
