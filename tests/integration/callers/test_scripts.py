"""The scripts of the manual publish, wait, and report the outcome by their exit code."""

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from socialpub.cli.main import main
from socialpub.core.errors import FieldError
from socialpub.providers.base import CannotTell
from socialpub.providers.responses import NoAnswer, Rejected
from tests.integration.callers.conftest import example, run
from tests.samples import media

Script = Callable[..., tuple[int, str]]

TEXT = '"Hello" from a $cript'
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@pytest.fixture(params=[pytest.param("bash", marks=needs_jq), "python"])
def script(request: pytest.FixtureRequest, env: dict[str, str], tmp_path: Path) -> Script:
    if request.param == "bash":
        command = ["bash", str(tmp_path / "publish.sh")]
        (tmp_path / "publish.sh").write_text(example("curl", "bash"))
    else:
        command = [sys.executable, "publish.py"]
        (tmp_path / "publish.py").write_text(example("Python", "python"))
        (tmp_path / "httpx.py").write_text("from httpx2 import *\n")  # the same API under the name that users install

    def publish(*arguments: str) -> tuple[int, str]:
        done = run([*command, *arguments], env, tmp_path)
        return done.returncode, done.stdout + done.stderr

    return publish


def test_a_script_publishes_an_image_and_reports_every_outcome(script, image_url, three_networks):
    x = three_networks["x"]
    code, shown = script(TEXT, image_url)
    assert (code, x.effects) == (0, [TEXT]), shown
    assert len(x.jobs[-1].content.media) == 1
    assert re.search("x profile:? published https://x.example/1", shown)
    x.results["create_post"] = [Rejected("The text is too long.")]
    code, shown = script("Again")
    assert code == 1 and "The text is too long." in shown
    x.results["create_post"], x.results["recover"] = [NoAnswer("It broke.")], [CannotTell("Look there.")]
    code, shown = script("And again")
    assert code == 3 and "Outcome unknown:" in shown
    x.problems = [FieldError(("body",), "is too long for X")]
    code, shown = script("Refused")
    assert code == 4 and "is too long for X" in shown


def test_each_command_of_the_page_publishes(env, three_networks, tmp_path, monkeypatch):
    monkeypatch.setenv("SOCIALPUB_URL", env["SOCIALPUB_URL"])
    monkeypatch.setenv("SOCIALPUB_KEY", env["SOCIALPUB_KEY"])
    monkeypatch.chdir(tmp_path)
    media.jpeg(tmp_path / "sunset.jpg")
    (tmp_path / "thread.txt").write_text(example("Threads", "text"))
    for line in (example("Shell", "sh") + example("Threads", "sh")).splitlines():
        said, _, command = line.rpartition(" | ")
        result = CliRunner().invoke(main, shlex.split(command)[1:], input=said.removeprefix("echo ").strip('"'))
        assert result.exit_code == 0, result.output
    parts = ["The first part.", "The second part replies to the first part."]
    assert three_networks["x"].effects == ["Hello from the shell", "Tonight", "From a pipe", *parts]


def test_the_line_of_cron_publishes_with_the_key_of_the_users_file(programs, three_networks, tmp_path):
    settings = tmp_path / ".config" / "socialpub" / "client.toml"
    settings.parent.mkdir(parents=True)
    written = example("Shell", "toml")
    settings.write_text(
        written.replace("http://127.0.0.1:8000", programs["SOCIALPUB_URL"]).replace("KEY", programs["SOCIALPUB_KEY"])
    )
    settings.chmod(0o600)
    *when, command = example("cron", "cron").strip().split(maxsplit=5)
    assert when == ["0", "9", "*", "*", "1"]
    command = re.sub(r"(?<!\\)%.*", "", command).replace(r"\%", "%")  # as cron reads the line
    command = command.replace("/usr/local/bin/socialpub", "socialpub")
    env = {name: programs[name] for name in ("PATH", "PYTHONPATH", "HOME")}
    done = run(["sh", "-c", command], env, tmp_path)
    assert done.returncode == 0, done.stderr
    assert three_networks["x"].effects == ["A new week begins."]


@needs_jq
def test_the_github_action_publishes_a_release_once(env, rt, three_networks, tmp_path):
    action = yaml.safe_load(example("GitHub Actions", "yaml"))
    assert action[True] == {"release": {"types": ["published"]}}, "YAML 1.1 reads the name on as true"
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "publish.sh").write_text(example("curl", "bash"))
    *_, step = action["jobs"]["announce"]["steps"]
    values = {
        "vars.SOCIALPUB_URL": env["SOCIALPUB_URL"],
        "secrets.SOCIALPUB_KEY": env["SOCIALPUB_KEY"],
        "vars.SOCIALPUB_PROFILE": env["PROFILE"],
        "github.event.release.id": "4711",
        "github.event.release.tag_name": "v1.1.0",
        "github.event.release.html_url": "https://example.com/v1.1.0",
    }
    given = {
        name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], value) for name, value in step["env"].items()
    }
    for _ in range(2):
        done = run(["bash", "-e", "-c", step["run"]], {**given, "PATH": env["PATH"]}, tmp_path)
        assert done.returncode == 0, done.stderr
    assert three_networks["x"].effects == ["Version v1.1.0 is released: https://example.com/v1.1.0"]
