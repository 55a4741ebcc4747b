"""The arguments of `socialpub post`."""

import time
from collections.abc import Iterator

import click
import pytest

from socialpub.cli.client.arguments import read_options, read_thread, read_time


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-12-24 18:00", "2026-12-24T18:00:00+01:00"),
        ("2026-07-24T18:00:30", "2026-07-24T18:00:30+02:00"),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00+00:00"),
        ("2026-12-24t18:00:00.5-05:30", "2026-12-24T18:00:00.500000-05:30"),
        ("2026-03-29 02:30 +02:00", "2026-03-29T02:30:00+02:00"),
    ],
)
def test_a_time_without_an_offset_is_in_the_zone_of_the_machine(berlin, text, instant):
    assert read_time(text).isoformat() == instant


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-03-29 02:30", "the clock skips this time"),
        ("2026-10-25 02:30", r"occurs twice .* 2026-10-25T02:30:00\+01:00 or 2026-10-25T02:30:00\+02:00"),
        ("2026-12-24", "needs a time that exists"),
        ("18:00", "needs a time that exists"),
        ("2026-02-30 18:00", "needs a time that exists"),
        ("2026-12-24 24:30", "needs a time that exists"),
        ("0001-01-01 00:00", "needs a time that exists"),
        ("２026-12-24 18:00", "needs a time that exists"),
    ],
)
def test_a_time_that_does_not_exist_exactly_once_is_refused(berlin, text, reason):
    with pytest.raises(click.UsageError, match=reason):
        read_time(text)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("x.replySettings=following", "following"),
        ("x.madeWithAi=true", True),
        ("x.made_with_ai=false", False),
        ("x.inReplyToPostId=1234", "1234"),
        ("pinterest.title=2026", "2026"),
        ("pinterest.title=true", "true"),
        ("pinterest.link=https://example.org/?a=b", "https://example.org/?a=b"),
        ("pinterest.coverImageKeyFrameTime=7", 7),
        ("pinterest.coverImageKeyFrameTime=soon", "soon"),
        ("pinterest.aiDisclosures=AI_MODIFIED, SYNTHETIC_PERFORMER", ["AI_MODIFIED", "SYNTHETIC_PERFORMER"]),
        ('pinterest.aiDisclosures=["AI_MODIFIED"]', ["AI_MODIFIED"]),
        ("mastodon.sensitive=true", True),
        ("mastodon.parent=12", "12"),
        ("x.title=" + "[" * 100_000, "[" * 100_000),
    ],
)
def test_the_table_of_the_network_decides_the_type_of_a_value(pair, value):
    network, _, rest = pair.partition(".")
    assert read_options([pair]) == {network: {rest.partition("=")[0]: value}}


@pytest.mark.parametrize("pairs", [["x=1"], ["x.a"], ["X.a=1"], ["x.a=1", "x.a=2"]])
def test_a_pair_of_another_form_or_given_twice_is_refused(pairs):
    with pytest.raises(click.UsageError, match=r"--option "):
        read_options(pairs)


def test_only_a_line_of_three_dashes_separates_the_parts_of_a_thread(tmp_path):
    file = tmp_path / "thread"
    file.write_text("\ufeffOne --- still one\n----\n\n---\n Two\n", "utf-8")
    assert read_thread(str(file)) == ["One --- still one\n----", "Two"]
