"""`socialpub manual` prints each topic, and names the nearest one for a misspelled name."""

import pytest
from click.testing import CliRunner

from socialpub.cli.main import main
from socialpub.core import manual
from tests.support.readme import MANUAL


def test_without_a_topic_the_list_has_every_file_with_one_line():
    shown = CliRunner().invoke(main, ["manual"])
    assert shown.exit_code == 0
    names = [line.split()[0] for line in shown.stdout.splitlines()]
    assert names == list(manual.list_topics())
    assert {*names, manual.INDEX} == {file.stem for file in MANUAL.glob("*.md")}
    assert all(len(line.split(maxsplit=1)[1]) > 10 for line in shown.stdout.splitlines())


@pytest.mark.parametrize("topic", manual.list_topics())
def test_a_pipe_gets_the_topic_as_markdown(topic):
    shown = CliRunner().invoke(main, ["manual", topic])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("# ")
    assert shown.stdout == manual.read_topic(topic)
    assert "<!--" not in shown.stdout


def test_an_unknown_topic_names_the_nearest():
    shown = CliRunner().invoke(main, ["manual", "bakups"])
    assert shown.exit_code == 2
    assert "did you mean backups?" in shown.stderr
