"""An installation that moves, as the manual describes: to another machine, and to another address."""

import json
import os
import pwd
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from socialpub.core.secrets import signed_urls
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock


def moved(terminal: Terminal, folder: Path, address: str | None = None) -> Terminal:
    """Another machine with its own `init`, and then config.toml and data_dir of the former machine."""
    other = Terminal(folder, HandClock(terminal.clock.now()), terminal.world)
    shutil.rmtree(folder / "data")
    shutil.copytree(terminal.folder / "data", folder / "data", symlinks=True)
    shutil.copy(terminal.config, other.config)
    if address:
        lines = [line for line in other.config.read_text().splitlines() if not line.startswith("base_url")]
        other.config.write_text("\n".join([f'base_url = "{address}"', *lines]))
    return other


def test_on_another_machine_accounts_keys_and_posts_are_there_and_go_on(terminal, tmp_path):
    profile = terminal.connect("ada")
    key = terminal("admin", "create-key", "laptop").stdout.strip()
    with terminal.open() as rt:
        post = accept(rt, profile, body="Due while moving")
    other = moved(terminal, tmp_path / "other")
    with other.open() as rt:
        drain(rt, other.clock)
        assert state_of(rt, post) == "published"
        with Client(create_app(rt), key) as client:
            assert client.send("GET", f"/posts/{post}").json()["data"]["status"] == "settled"
    assert [post.text for post in terminal.world.x.posts] == ["Due while moving"]


# --- the old machine is lost -----------------------------------------------------------------------------------------


@pytest.fixture
def lost(terminal: Terminal) -> tuple[Path, bytes]:
    """A backup with a profile, and secret.key: the only files left of the old machine."""
    terminal.connect("ada")
    copy = terminal.folder / "last.copy"
    assert terminal("backup", str(copy)).exit_code == 0
    return copy, (terminal.folder / "data" / "secret.key").read_bytes()


@pytest.fixture
def fresh(terminal: Terminal, tmp_path: Path) -> Terminal:
    """Another machine after `make install` and its first start."""
    other = Terminal(tmp_path / "other", terminal.clock, terminal.world)
    assert other("admin", "list-keys").exit_code == 0
    return other


def test_a_backup_is_restored_over_the_empty_database_of_a_new_installation(fresh, lost):
    copy, key = lost
    refused = fresh("restore", str(copy))
    key_file = fresh.folder / "data" / "secret.key"
    assert f"another secret.key than {key_file}" in refused.stderr
    assert f"install --owner={pwd.getpwuid(os.getuid()).pw_name} --mode=600 FILE {key_file}" in refused.stderr
    assert (fresh.folder / "data" / "socialpub.db").exists(), "what was refused changed nothing"

    key_file.write_bytes(key)
    done = fresh.success("restore", str(copy))
    (aside,) = (fresh.folder / "data").glob("socialpub.db.new-*")
    assert f"The empty database of the new installation is now {aside}" in done.stderr
    assert "ada" in fresh("admin", "list-profiles").stdout


@pytest.mark.parametrize("what", ["a key", "a profile"])
def test_a_database_that_somebody_has_used_is_never_moved(fresh, lost, what):
    if what == "a key":
        fresh("admin", "create-key", "laptop")
    else:
        fresh.connect("ben")
    copy, key = lost
    (fresh.folder / "data" / "secret.key").write_bytes(key)
    assert "already exists and is not overwritten" in fresh("restore", str(copy)).stderr
    assert list((fresh.folder / "data").glob("socialpub.db.new-*")) == []


# --- another address -------------------------------------------------------------------------------------------------


def test_at_another_address_former_addresses_and_answers_stay_valid(terminal, tmp_path):
    key = terminal("admin", "create-key", "laptop").stdout.strip()
    size = {"fileName": "sunset.jpg", "mimeType": "image/jpeg", "fileSize": 5}
    with terminal.open() as rt, Client(create_app(rt), key) as client:
        first = client.send("POST", "/uploads", size, idempotency_key="once").json()["data"]
        media = urlsplit(signed_urls.media_url(rt.settings, rt.secrets, "06/a.jpg", rt.now())).query
    other = moved(terminal, tmp_path / "other", "https://social.example.com/social")
    with other.open() as rt, Client(create_app(rt), key) as client:
        again = client.send("POST", "/uploads", size, idempotency_key="once")
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json()["data"]["artifactId"] == first["artifactId"]
        assert again.json()["data"]["uploadUrl"].startswith("https://social.example.com/social/storage/uploads/")
        former = urlsplit(first["uploadUrl"])
        sent = client.send("PUT", f"{former.path}?{former.query}", b"bytes", content_type="image/jpeg", key=None)
        assert sent.status == 200, sent.body
        assert signed_urls.check_media(rt.secrets, "06/a.jpg", media, rt.now()) > 0
    shown = json.loads(other("doctor", "--json").stdout)
    assert "https://social.example.com/social is https." in [finding["message"] for finding in shown]
