"""Starting: two at once, on another's data, with a mistake in the configuration, at an address that is taken."""

import base64
import secrets
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.settings import init_template
from tests.e2e.processes import Process, until
from tests.e2e.stage import START_SECONDS, Stage


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Stage]:
    """Right after `init`: there is no database yet."""
    stage = Stage(tmp_path / "house", pace=0)
    config = stage.config.read_text()
    stage.config.unlink()
    init_template.create(stage.folder)
    stage.config.write_text(config)
    yield stage
    stage.close()


def ended(stage: Stage, process: Process) -> str:
    """What a process said that could not start; it says so once, and ends with 1."""
    assert process.wait(START_SECONDS) == 1, process.said
    assert "Traceback" not in process.said
    assert process.said.count("Error:") == 1
    return process.said


@pytest.mark.parametrize("times", range(3))
def test_two_that_start_at_once_on_a_new_folder_both_come_up(house: Stage, times: int) -> None:
    web, worker = house.begin("web"), house.begin("worker")
    house.wait_until_up(web, "web")
    house.wait_until_up(worker, "worker")
    with closing(sqlite3.connect(house.data / "socialpub.db")) as database:
        names = [row[0] for row in database.execute("SELECT name FROM schema_migration")]
    assert names and len(names) == len(set(names))


@pytest.mark.parametrize("role", ["serve", "worker"])
def test_a_database_of_a_newer_version_is_not_touched(house: Stage, role: str) -> None:
    house.admin("list-keys")
    path = house.data / "socialpub.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO schema_migration VALUES (9999, '9999_from_the_future', '2027-01-01 00:00:00')")
    before = path.read_bytes()
    said = ended(house, house.begin(role))
    assert "newer socialpub" in said and "9999_from_the_future" in said and "Hint:" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("role", ["web", "worker"])
def test_a_database_of_another_key_is_refused(house: Stage, role: str) -> None:
    house.admin("list-keys")
    (house.data / "secret.key").write_bytes(base64.urlsafe_b64encode(secrets.token_bytes(32)))
    said = ended(house, house.begin(role))
    assert "another secret.key" in said and "Hint:" in said


@pytest.mark.parametrize("role", ["serve", "web"])
def test_an_address_in_use_is_told_with_the_remedy(house: Stage, role: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(house.url.rpartition(":")[2])))
        taken.listen()
        said = ended(house, house.begin(role))
    assert house.url.removeprefix("http://") in said and "in use" in said
    assert "`listen`" in said


@pytest.mark.parametrize("role", ["serve", "worker"])
def test_mistakes_in_the_configuration_are_told_all_at_once_and_never_a_secret(house: Stage, role: str) -> None:
    with house.config.open("a") as config:
        config.write('[publishing]\nworkers = 900\nmax_latenes = "1h"\n[metrics]\ntoken = ["hush-hush"]\n')
    said = ended(house, house.begin(role))
    assert "3 mistakes" in said
    assert "publishing.workers" in said and "900" in said and "from 1 to 64" in said
    assert "max_latenes" in said and "max_lateness" in said
    assert "metrics.token" in said
    assert "hush-hush" not in said


def test_a_second_serve_leaves_the_first_alone(house: Stage) -> None:
    first = house.start("serve")
    (worker,) = first.children()
    said = ended(house, house.begin("serve"))
    assert "in use" in said
    assert first.children() == [worker]
    until(lambda: house.caller().ask("GET", "/readyz").status_code == 200, "the first is well")
