"""The README's first post and the manual's images, typed as written: every line, in order, in one shell.

The ports differ, because other programs may use the usual ones. A browser's requests replace the reader who opens a
page and presses a button.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from socialpub.cli.demo import walkthrough
from tests.e2e.processes import until
from tests.support.ports import free_port
from tests.support.readme import README, blocks, topic

FIRST_POST = "## Publish your first post"
CONSENT_PAGE = re.compile(r"^ +(http://\S+/authorize\?\S+)$", re.MULTILINE)
WAIT_FOR_THE_PICTURE = """
    newest=$(curl -s -H "$AUTH" "$API/posts" |
      python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])')
    curl -s -H "$AUTH" "$API/posts/$newest?wait=60" > picture.json
"""
"""The reader looks at the result; the test waits for it."""


class Shell:
    """One bash that is given lines, as a reader's terminal is."""

    def __init__(self, lines: str, folder: Path) -> None:
        self._log = folder / "terminal.log"
        here = {name: value for name, value in os.environ.items() if not name.startswith("SOCIALPUB_")}
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                ["bash", "-euc", lines],
                cwd=folder,
                env=here | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def shown(self) -> str:
        return self._log.read_text()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> int:
        return self._process.wait(300)

    def end(self) -> None:
        """With everything that it has in the background."""
        if not self.ended:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(60)


@pytest.fixture
def ports() -> dict[str, str]:
    """Return the port of this test for each port of the README."""
    return {"8765": str(free_port()), "8100": str(free_port())}


@pytest.fixture
def shell(tmp_path: Path, ports: dict[str, str]) -> Iterator[Shell]:
    *written, stop = blocks(README, FIRST_POST, "sh")
    media = [
        blocks(topic("publishing"), section, "sh") for section in ("## Publish an image", "## Upload a large file")
    ]
    (image,), (upload,) = media
    typed = type_lines([*written, image, WAIT_FOR_THE_PICTURE, upload, stop], tmp_path, ports)
    yield typed
    typed.end()


def type_lines(written: list[str], folder: Path, ports: dict[str, str]) -> Shell:
    """Begin to type these blocks, in order."""
    lines = "\n".join(written)
    own = {
        "s/8000/8765/": f"s/8000/{ports['8765']}/",
        "socialpub sandbox ": f"socialpub sandbox --listen 127.0.0.1:{ports['8100']} ",
        ":8765": f":{ports['8765']}",
    }
    for usual, here in own.items():
        assert usual in "\n".join(blocks(README, FIRST_POST, "sh"))
        lines = lines.replace(usual, here)
    # Where a line fails nothing stays behind.
    return Shell(f"trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{lines}\nwait", folder)


def test_the_first_post_works_as_written(shell, ports, tmp_path):
    until(lambda: CONSENT_PAGE.search(shell.shown) or shell.ended, "the address of the consent page is shown", 300)
    page = CONSENT_PAGE.search(shell.shown)
    assert page, shell.shown
    walkthrough.allow(page[1], "demo")
    assert shell.wait() == 0, shell.shown

    sandbox = f"http://127.0.0.1:{ports['8100']}/x/demo/status/"
    assert f'"url": "{sandbox}' in shell.shown, "the first post, as the README shows it"
    assert '"mimeType":"image/jpeg"' in shell.shown, "the upload in three steps"
    (delivery,) = json.loads((tmp_path / "my-appliance" / "picture.json").read_text())["data"]["deliveries"]
    assert delivery["status"] == "published" and delivery["url"].startswith(sandbox), delivery
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{ports['8765']}/healthz", trust_env=False)


@pytest.mark.endurance
def test_the_first_post_stops_where_another_socialpub_responds(tmp_path, ports, make_installation):
    """It is ready, so a loop that asks `/readyz` alone would go on with the other appliance."""
    other = make_installation()
    other.start("serve")
    ports["8765"] = other.url.rpartition(":")[2]
    make, start, connect, *_ = blocks(README, FIRST_POST, "sh")
    typed = type_lines([make, start, f"if {connect.strip()}; then exit 7; fi", "kill %1"], tmp_path, ports)
    try:
        assert typed.wait() != 7, typed.shown
        folder = tmp_path / "my-appliance"
        assert f"127.0.0.1:{ports['8765']} is in use by another program" in (folder / "serve.log").read_text()
        assert "another socialpub answers" in typed.shown
    finally:
        typed.end()
