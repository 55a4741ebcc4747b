"""The first thing anybody tries."""

import os
import re
import signal
from pathlib import Path

import httpx2

from tests.e2e.processes import Process, until

ASTRAY = {"SOCIALPUB_PROVIDERS__X__API_URL": "http://192.0.2.1", "SOCIALPUB_BASE_URL": "http://192.0.2.1"}
"""Settings of another appliance, in the shell in which somebody starts the demo."""


def test_the_demo_of_all_networks_publishes_prints_addresses_and_stays_up(tmp_path: Path) -> None:
    printed = stay_and_sign_in(tmp_path / "demo", "--all-networks")
    assert "simulates X, TikTok, Pinterest and Bluesky." in printed
    for kind in ("image", "video"):
        url = r"http://127\.0\.0\.1:\d+/bluesky/profile/did:plc:\w+/post/\w+"
        assert re.search(rf"✓ {kind} +Bluesky +published +{url}", printed), printed
    assert "/bluesky/feed" in printed


def stay_and_sign_in(folder: Path, *options: str) -> str:
    """Return the output of the demo."""
    process = Process(
        "demo", "--folder", str(folder), *options, log=folder.with_suffix(".log"), env=os.environ | ASTRAY
    )
    try:
        until(lambda: "Ctrl-C" in process.output or not process.running, "the demo is up or gone")
        check(process.output, folder)
        link = re.search(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]+", process.output)
        assert link is not None, process.output
        with httpx2.Client(follow_redirects=True, trust_env=False) as browser:
            headers = {"accept": "text/html"}
            assert "<h1>Overview</h1>" in browser.get(link[0], headers=headers).text
            assert "demo" in browser.get(link[0].partition("login")[0] + "profiles", headers=headers).text
        with httpx2.Client(follow_redirects=True, trust_env=False) as other:
            assert other.get(link[0], headers=headers).status_code == 403
        os.kill(process.pid, signal.SIGINT)
        assert process.wait() == 0, process.output
        return process.output
    finally:
        process.end()


def check(printed: str, folder: Path) -> None:
    for kind in ("image", "video"):
        for network in ("X", "TikTok", "Pinterest"):
            assert re.search(rf"✓ {kind} +{network} +published", printed), printed
    assert re.search(r"http://127\.0\.0\.1:\d+/x/demo/status/\d+", printed), printed
    assert re.search(r"http://127\.0\.0\.1:\d+/pinterest/pin/\d+/", printed), printed
    for network in ("x", "tiktok", "pinterest"):
        assert f"/{network}/feed" in printed
        assert f"connect-profile {network}" in printed
    assert re.search(r"spk_\w+", printed)
    # The folder's own length is not the demo's doing, and Bluesky's addresses contain two long ids.
    lines = [line.partition("/bluesky/profile/")[0] for line in printed.replace(str(folder), "~").splitlines()]
    wide = [line for line in lines if len(line) > 100]
    assert wide == []
    assert not re.search(r"signature=|state=|code=|client_secret", printed)
    assert ("luesky" in printed) == ("--provider all" in printed)
