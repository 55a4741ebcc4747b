"""The image: built from nothing but the source and the locked packages, and run as `compose.yaml` confines it."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator

import httpx2
import pytest

from tests.e2e.processes import until
from tests.endurance import base_image
from tests.endurance.containers import ROOT, Podman, options_here, options_of_compose, why_impossible
from tests.support.ports import free_port
from tests.support.readme import topic
from tests.support.released import Clone

WHY = why_impossible()
IMAGE, BASE, WHEELS = "localhost/socialpub", "localhost/base", "/wheels"

pytestmark = [pytest.mark.endurance, pytest.mark.skipif(WHY is not None, reason=f"no container can run: {WHY}")]


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """With the image in its storage."""
    folder = tmp_path_factory.mktemp("podman")
    podman = Podman(folder)
    root = folder / "root"
    base_image.make(root, WHEELS)
    with subprocess.Popen(["tar", "-C", str(root), "-cf", "-", "."], stdout=subprocess.PIPE) as packed:
        podman.run("import", "-", BASE, stdin=packed.stdout)
    tried = podman.try_to("run", "--rm", *options_here(), BASE, "python3", "-c", "print('it runs')")
    if tried.stdout != "it runs\n":
        pytest.skip(f"no container can run: {tried.stderr.strip().splitlines()[-1:]}")
    wheels = folder / "wheels"
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps", "-r",
         str(ROOT / "requirements.lock"), "--dest", str(wheels)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert fetched.returncode == 0, fetched.stderr
    podman.run(
        "build", "--format=docker", *building(podman), f"--build-arg=BASE={BASE}",
        "--file=systemd/container/Containerfile", f"--tag={IMAGE}", ".",
    )  # fmt: skip
    yield podman
    podman.try_to("rm", "--all", "--force", "--time=1")
    podman.try_to("system", "reset", "--force")


def building(podman: Podman) -> list[str]:
    """How an image is built here: from the wheels that were fetched."""
    return ["--network=host", "--isolation=chroot", f"--volume={podman.folder / 'wheels'}:{WHEELS}:ro"]


@pytest.fixture
def start(podman: Podman) -> Iterator[Callable[..., str]]:
    """Start a container with these options; its address, once it is ready."""

    def begin(*options: str) -> str:
        address = f"127.0.0.1:{free_port()}"
        listen = ["--env", f"SOCIALPUB_LISTEN={address}", "--env", f"SOCIALPUB_BASE_URL=http://{address}"]
        podman.run(
            "run", "--detach", "--name=appliance", *options_here(), *options_of_compose(), *options, *listen, IMAGE
        )
        until(lambda: is_ready(address) or not podman.state("appliance")["Running"], "it is ready", seconds=120)
        assert podman.state("appliance")["Running"], podman.log("appliance")
        return address

    yield begin
    podman.try_to("rm", "--force", "--time=1", "appliance")


def is_ready(address: str) -> bool:
    try:
        return httpx2.get(f"http://{address}/readyz", trust_env=False, timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def test_the_first_start_fills_an_empty_volume_and_every_later_one_goes_on(podman, start):
    address = start("--volume=posts:/data")
    log = podman.log("appliance")
    assert "Keep secret.key safe" in log
    assert f"http://{address}/setup?token=" in log

    inside = ("exec", "appliance")
    assert podman.run(*inside, "id").startswith("uid=10001")
    rights = podman.run(*inside, "cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in rights
    assert "NoNewPrivs:\t1" in rights
    assert podman.try_to(*inside, "mkdir", "/opt/socialpub/mine").returncode, "only the volume can be written"
    (image,) = json.loads(podman.run("inspect", IMAGE))
    kind, *healthcheck = (image.get("Healthcheck") or image["Config"]["Healthcheck"])["Test"]
    assert kind == "CMD"
    podman.run(*inside, *healthcheck)

    key = podman.run(*inside, "socialpub", "admin", "create-key", "first").strip()
    secret = podman.run(*inside, "cat", "/data/data/secret.key")
    podman.run("stop", "appliance")
    assert podman.state("appliance")["ExitCode"] == 0, podman.log("appliance")
    podman.run("rm", "appliance")

    address = start("--volume=posts:/data")
    assert podman.run(*inside, "cat", "/data/data/secret.key") == secret
    asked = httpx2.get(f"http://{address}/api/v1/posts", headers={"authorization": f"Bearer {key}"}, trust_env=False)
    assert asked.status_code == 200
    assert podman.log("appliance").count("Keep secret.key safe") == 0


def test_any_user_will_do_that_owns_the_volume(podman, start, tmp_path):
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o700)
    os.chown(volume, 4321, 4321)
    start(f"--volume={volume}:/data", "--user=4321:4321")
    assert {path.stat().st_uid for path in (volume, *volume.rglob("*"))} == {4321}
    assert '"data_dir"' in podman.try_to("exec", "appliance", "socialpub", "doctor", "--json").stdout


def test_the_volume_of_another_user_is_reported_with_a_remedy(podman, tmp_path):
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o700)
    os.chown(volume, 1, 1)
    done = podman.try_to("run", "--rm", *options_here(), *options_of_compose(), f"--volume={volume}:/data", IMAGE)
    assert done.returncode == 1
    assert "Give /data to user 10001: `sudo chown -R 10001:10001 /data`" in done.stderr
    line = "podman run --rm --user root --entrypoint chown --volume socialpub:/data socialpub -R 10001:10001 /data"
    assert f"`{line}`" in topic("install").read_text(), "what this means for a container"


def test_what_needs_a_stopped_appliance_is_typed_as_the_manual_says(podman, start):
    start("--volume=secrets:/data")
    inside = ("exec", "appliance")
    before = podman.run(*inside, "cat", "/data/data/secret.key")
    refused = podman.try_to(*inside, "socialpub", "admin", "rotate-secret")
    assert refused.returncode == 1
    stop, rotate, restart = re.findall("`([^`]+)`", refused.stderr)
    assert (stop, rotate, restart) == (
        "podman stop appliance", "socialpub admin rotate-secret", "podman start appliance"
    )  # fmt: skip
    # As the manual says of commands that need a stopped appliance.
    for line in (stop, f"podman run --rm --volume secrets:/data {rotate.replace('socialpub', IMAGE, 1)}", restart):
        _, verb, *words = shlex.split(line)
        podman.run(verb, *(options_here() if verb == "run" else []), *words)
    assert podman.run(*inside, "cat", "/data/data/secret.key") != before
    refused = podman.try_to(*inside, "socialpub", "admin", "set-password")
    assert "Run `socialpub admin set-password` in a terminal (for a container: `podman exec -it`)." in refused.stderr


def test_the_image_of_a_release_is_loaded_from_its_archive_and_knows_its_version(podman, tmp_path):
    clone = Clone(tmp_path / "clone")
    clone.set_version()
    clone.write_date()
    clone.git("tag", f"v{clone.release}")
    built = clone.build(BUILDER=str(podman.as_builder(*building(podman))), BASE=BASE)
    assert built.returncode == 0, built.stderr
    image = f"localhost/socialpub:{clone.release}"
    podman.run("rmi", image)
    podman.run("load", "--input", str(clone.dist / f"socialpub-{clone.release}-image.tar"))
    said = podman.run("run", "--rm", *options_here(), *options_of_compose(), image, "--version")
    assert said == f"socialpub {clone.release}\n"
    inside = podman.run(
        "run", "--rm", *options_here(), "--entrypoint=python3", image, "-c",
        "from importlib import resources as r; print((r.files('socialpub') / 'manual/changelog.md').read_text())",
    )  # fmt: skip
    assert f"## {clone.release}" in inside
