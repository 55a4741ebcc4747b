"""The first thing anybody tries."""

import os
import re
import subprocess
import sys
from pathlib import Path

ASTRAY = {"SOCIALPUB_PROVIDERS__X__API_URL": "http://192.0.2.1", "SOCIALPUB_BASE_URL": "http://192.0.2.1"}
"""Settings of another appliance, in the shell in which somebody starts the demo."""


def demo(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "socialpub", "demo", "--once", "--folder", str(folder)],
        env=os.environ | ASTRAY,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_demo_publishes_and_says_where_to_look_once_and_again(tmp_path: Path) -> None:
    # One after the other: both would take the usual ports.
    for _ in range(2):
        check(tmp_path / "demo")


def check(folder: Path) -> None:
    done = demo(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("picture", "video"):
        for network in ("X", "TikTok", "Pinterest"):
            assert re.search(rf"✓ {kind} +{network} +published", done.stdout), done.stdout
    assert re.search(r"http://127\.0\.0\.1:\d+/x/demo/status/\d+", done.stdout), done.stdout
    assert re.search(r"http://127\.0\.0\.1:\d+/pinterest/pin/\d+/", done.stdout), done.stdout
    for network in ("x", "tiktok", "pinterest"):
        assert f"/{network}/feed" in done.stdout
        assert f"connect-profile {network}" in done.stdout
    assert re.search(r"spk_\w+", done.stdout)
    assert "Traceback" not in done.stderr

    # The folder's own length is not the demo's doing.
    wide = [line for line in done.stdout.replace(str(folder), "~").splitlines() if len(line) > 100]
    assert wide == []
    assert not re.search(r"signature=|state=|code=|client_secret", done.stdout)
