"""`serve --init`: what a container's first start finds in an empty volume, and every later one in a full one."""

import os
from pathlib import Path

import click
import pytest

from socialpub.cli.context import CommandContext
from socialpub.cli.setup import create_if_missing
from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader, template


def start(config: Path) -> None:
    with click.Context(click.Command("serve")):
        create_if_missing(CommandContext(config=config))


def test_an_empty_volume_gets_a_configuration_and_a_key_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    start(config)
    key = loader.load(config, {}).secret_key_file
    first = key.read_bytes()
    assert "Keep secret.key safe" in capsys.readouterr().err
    config.write_text(config.read_text() + "# mine\n")
    start(config)
    assert config.read_text().endswith("# mine\n")
    assert key.read_bytes() == first
    assert capsys.readouterr().err == ""


def test_a_lost_configuration_makes_no_second_key_beside_the_data(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    start(config)
    config.unlink()
    with pytest.raises(template.AlreadyThere):
        start(config)


def test_the_place_is_the_one_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOCIALPUB_CONFIG", str(tmp_path / "volume" / "config.toml"))
    with click.Context(click.Command("serve")):
        create_if_missing(CommandContext())
    assert (tmp_path / "volume" / "data" / "secret.key").exists()


def test_a_volume_of_somebody_else_is_told_with_the_user_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path) -> None:
        raise OperatorError(f"{folder}/data cannot be written: Permission denied.", "Choose another folder.")

    monkeypatch.setattr(template, "create", refused)
    with pytest.raises(OperatorError) as told:
        start(tmp_path / "config.toml")
    assert f"to user {os.getuid()}" in (told.value.hint or "")


def test_a_volume_that_cannot_even_be_looked_into_is_told_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", closed)
    with pytest.raises(OperatorError) as told:
        start(tmp_path / "config.toml")
    assert f"to user {os.getuid()}" in (told.value.hint or "")
