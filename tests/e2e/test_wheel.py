"""The wheel alone, in an empty environment far from any checkout: from `init` to a published image.

Nothing is fetched: what socialpub depends on is seen by the new environment through a path file. The new environment
does not see the checkout, so a file that is missing in the wheel fails here.
"""

import json
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from socialpub.web.http import static
from tests.e2e.caller import Caller, SandboxControl
from tests.e2e.processes import Process, until
from tests.samples import media
from tests.support.ports import free_port
from tests.support.wheel import build_wheel

ROOT = Path(__file__).parents[2]
EDITABLE = re.compile(r"^__editable__[._].*(\.pth|_finder\.py)$|\.egg-link$")


class Trial:
    """A folder with nothing but the installed program, and a surrounding that knows nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.program = folder / "venv" / "bin" / "socialpub"
        self.package = Path()
        self.processes: list[Process] = []

    def install(self, package: Path) -> None:
        """A wheel or a source distribution, which is built by the setuptools that it sees."""
        self.package = package
        venv.create(self.folder / "venv")
        python = self.folder / "venv" / "bin" / "python"
        (site,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        borrowed = _dependencies(self.folder / "dependencies")
        (site / "dependencies.pth").write_text(f"{borrowed}\n")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps",
             "--no-build-isolation", package],
            env=self.env, cwd=self.home, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def run(self, *arguments: str, stdin: str = "", cwd: Path | None = None) -> str:
        """A command; what it printed. It must end with 0."""
        done = subprocess.run(
            [self.program, *arguments], input=stdin, env=self.env, cwd=cwd or self.home,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def begin(self, *arguments: str) -> Process:
        process = Process(
            *arguments,
            log=self.folder / f"{arguments[0]}.log",
            env=self.env,
            program=[str(self.program)],
            cwd=self.home,
        )
        self.processes.append(process)
        return process


def _dependencies(folder: Path) -> Path:
    """What is installed here but socialpub itself, as links; what leads to the checkout is left out."""
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not EDITABLE.search(entry.name) and not entry.name.startswith("socialpub-"):
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def trial(tmp_path: Path, wheel: Path) -> Iterator[Trial]:
    trial = Trial(tmp_path / "trial")
    trial.install(wheel)
    yield trial
    for process in trial.processes:
        process.end()


@pytest.mark.endurance
def test_the_wheel_alone_gets_from_init_to_a_published_picture(trial: Trial) -> None:
    python = trial.folder / "venv" / "bin" / "python"
    lies = subprocess.run(
        [python, "-c", "import socialpub; print(socialpub.__file__)"],
        env=trial.env, cwd=trial.home, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert lies.startswith(str(trial.folder / "venv")), "this is the installed one"
    assert trial.run("config", "--example") == (ROOT / "config.example.toml").read_text().strip()
    assert f"ExecStart={trial.program} " in trial.run("config", "--unit", "worker")

    trial.run("init")
    sandbox = trial.begin("sandbox", "--listen", "127.0.0.1:0")
    until(lambda: "Ctrl-C" in sandbox.output or not sandbox.running, "the sandbox is up")
    sandbox_url = sandbox.output.split()[0].rstrip("/")
    url = f"http://127.0.0.1:{free_port()}"
    lines = sandbox.output[sandbox.output.index("[providers.x]") : sandbox.output.index("Then connect")]
    config = trial.home / "config.toml"
    config.write_text(re.sub(r"127\.0\.0\.1:8000", url.removeprefix("http://"), config.read_text()) + "\n" + lines)

    serve = trial.begin("serve")
    until(lambda: "the worker is up" in serve.output or not serve.running, "the appliance is up")
    assert serve.running, serve.output
    with closing(SandboxControl(sandbox_url, "x")) as control:
        profile = trial.run("admin", "import-profile", "x", stdin=control.grant("ada"))
    caller = Caller(url, trial.run("admin", "create-key", "trial"))
    assert caller.ask("GET", "/readyz").status_code == 200

    picture = media.png(trial.folder / "sunset.png").read_bytes()
    answer = caller.ask(
        "POST",
        "/api/v1/posts",
        data={"payload": _payload(profile)},
        files={"photo": ("sunset.png", picture, "image/png")},
    )
    assert answer.status_code == 201, answer.text
    delivery: dict[str, Any] = caller.delivery(answer.json()["data"]["id"])
    assert delivery["status"] == "published", delivery
    feed = httpx2.get(f"{sandbox_url}/x/feed", trust_env=False).text
    assert "From a wheel" in feed and "<img" in feed
    # The wheel also contains files that are loaded on first use.
    for path in ("/api/v1/openapi-docs", "/problems/not-found", "/manual/backups", "/manual/images/overview.png"):
        assert caller.ask("GET", path, headers={"accept": "text/html"}).status_code == 200
    for name in static.list_static():
        assert caller.ask("GET", f"/{static.static_url(name)}").status_code == 200, name
    assert names_below(Path(lies.strip()).parent / "web" / "static") == names_below(static.FOLDER)
    assert trial.run("doctor", "--json").startswith("[")
    assert serve.stop() == 0
    caller.close()


def names_below(folder: Path) -> set[Path]:
    """The files of a folder: scripts and styles, and the licences beside them."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def _payload(profile: str) -> str:
    return json.dumps({
        "post": {"body": "From a wheel"},
        "profiles": [profile],
        "media": [{"fileField": "photo", "alt": "The sun sets behind a lake"}],
    })  # fmt: skip
