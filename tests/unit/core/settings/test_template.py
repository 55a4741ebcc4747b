"""The files that `socialpub init` creates."""

import os
import stat
from pathlib import Path

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.settings import loader, template


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture(autouse=True)
def generous_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_what_is_made_is_a_configuration_that_loads_and_a_key_that_only_the_owner_reads(tmp_path):
    folder = tmp_path / "new" / "home"
    config, data, key = template.create(folder)

    loaded = loader.load(config, {})
    assert loaded.data_dir == data
    assert loaded.secret_key_file == key
    assert mode(data) == 0o700
    assert mode(key) == 0o600
    assert mode(config) == 0o600
    assert crypto.load(key)
    assert everything_in(folder) == ["config.toml", "data", "data/secret.key"]


def test_two_homes_have_different_keys(tmp_path):
    one, other = template.create(tmp_path / "one"), template.create(tmp_path / "other")
    assert one[2].read_bytes() != other[2].read_bytes()


def test_the_sections_of_the_template_work_once_they_are_uncommented(tmp_path):
    config, _, _ = template.create(tmp_path)
    lines = config.read_text().splitlines()
    start = lines.index(next(line for line in lines if line.startswith("# [providers.x]")))
    config.write_text("\n".join(lines[:start] + [line.removeprefix("# ") for line in lines[start:]]))
    assert loader.load(config, {}).providers.tiktok.client_key == ""


@pytest.mark.parametrize("there", ["config.toml", "data/secret.key", "data/socialpub.db"])
def test_existing_files_stay_and_no_other_file_is_created(tmp_path, there):
    file = tmp_path / there
    file.parent.mkdir(exist_ok=True)
    file.write_text("precious")
    before = everything_in(tmp_path)

    with pytest.raises(template.AlreadyThere) as raised:
        template.create(tmp_path)

    assert str(file) in raised.value.message
    assert raised.value.hint
    assert file.read_text() == "precious"
    assert everything_in(tmp_path) == before


def test_a_dangling_link_is_not_written_through(tmp_path):
    (tmp_path / "config.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(template.AlreadyThere):
        template.create(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_an_empty_data_folder_is_taken_and_closed_to_others(tmp_path):
    (tmp_path / "data").mkdir(mode=0o755)
    template.create(tmp_path)
    assert mode(tmp_path / "data") == 0o700


def test_a_file_where_the_data_folder_belongs_is_named(tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(OperatorError) as raised:
        template.create(tmp_path)
    assert str(tmp_path / "data") in raised.value.message
    assert everything_in(tmp_path) == ["data"]


def test_a_failure_at_the_last_file_leaves_nothing(tmp_path, monkeypatch):
    def full_at_the_configuration(path, *rest, **more):
        if Path(path).name == "config.toml":
            raise OSError(28, "No space left on device", str(path))
        return os_open(path, *rest, **more)

    os_open = os.open
    monkeypatch.setattr(os, "open", full_at_the_configuration)
    with pytest.raises(OperatorError, match="No space left") as raised:
        template.create(tmp_path / "a" / "b")
    assert raised.value.hint
    assert everything_in(tmp_path) == []


def test_an_incomplete_key_file_is_removed(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OperatorError, match="Input/output error"):
        template.create(tmp_path)
    assert everything_in(tmp_path) == []
