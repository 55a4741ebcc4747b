"""The recipe of the container names what exists, and says the same in each of its files."""

import re
from ipaddress import ip_address, ip_network
from pathlib import Path

import yaml

from socialpub.core import commands
from socialpub.core.settings import loader, template
from tests.support.readme import blocks, topic

ROOT = Path(__file__).parents[1]
PAGE = topic("install")
FOLDER = ROOT / "systemd" / "container"
RECIPE = (FOLDER / "Containerfile").read_text()
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICE = COMPOSE["services"]["socialpub"]
COMPOSE_VOLUME = f"{COMPOSE['name']}_{next(iter(COMPOSE['volumes']))}"


def test_what_the_image_is_made_of_exists_and_is_not_ignored() -> None:
    copied = {name for line in re.findall(r"^COPY ([^-].*) \S+$", RECIPE, re.MULTILINE) for name in line.split()}
    assert {"socialpub", "requirements.lock"} <= copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (FOLDER / "Containerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_the_image_is_nobodys_root_and_its_packages_are_the_locked_ones() -> None:
    assert re.search(r"^USER [1-9]\d+:", RECIPE, re.MULTILINE)
    assert "--require-hashes -r requirements.lock" in RECIPE
    assert RECIPE.count("--no-deps") == 1


def test_compose_builds_this_recipe_and_keeps_the_volume_that_it_names() -> None:
    assert (FOLDER / SERVICE["build"]["context"]).resolve() == ROOT
    assert ROOT / SERVICE["build"]["dockerfile"] == FOLDER / "Containerfile"
    (volume,) = SERVICE["volumes"]
    name, _, place = volume.partition(":")
    assert name in COMPOSE["volumes"]
    assert f"\nVOLUME {place}\n" in RECIPE
    assert SERVICE["read_only"] is True
    assert SERVICE["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"])


def test_the_proxy_on_the_host_is_trusted_and_no_other_container(tmp_path: Path) -> None:
    """The container sees the gateway as the peer of connections to the published port."""
    template.create(tmp_path)
    settings = loader.load(tmp_path / "config.toml", SERVICE["environment"])
    (config,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    (trusted,) = settings.proxies.trusted
    assert trusted == config["gateway"]
    assert ip_address(trusted) in ip_network(config["subnet"])
    assert ip_network(config["subnet"]).is_private
    assert "networks" not in SERVICE, "it is in the default network, whose gateway this is"
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"]), "else strangers come over the gateway"


def test_a_stop_is_given_longer_than_serve_takes() -> None:
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) > 15


def test_the_manual_has_a_line_for_each_command_that_needs_a_stopped_appliance() -> None:
    lines = [line for block in blocks(PAGE, "## In a container", "sh") for line in block.splitlines()]
    for words in ("restore", "init --new-secret", "admin rotate-secret"):
        line = f"podman run --rm --volume socialpub:/data socialpub {words}"
        assert any(typed.startswith(line) for typed in lines), line
    assert COMPOSE_VOLUME == "socialpub_data"
    assert COMPOSE_VOLUME in PAGE.read_text()


def test_the_container_has_the_name_that_messages_use() -> None:
    (run,) = [
        line for block in blocks(PAGE, "## In a container", "sh") for line in block.splitlines() if "--detach" in line
    ]
    assert f"--name {commands.CONTAINER} " in run
    assert run.endswith("--volume socialpub:/data socialpub")
    assert f"podman exec -it {commands.CONTAINER} socialpub admin set-password" in PAGE.read_text()
