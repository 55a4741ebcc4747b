"""Who is a browser, by the Accept header."""

from typing import Any, get_args

import pytest

from socialpub.db.states import ArtifactStatus, PostStatus, ProfileStatus, State
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.media.types import ACCEPTED_TYPES
from socialpub.web.api import requests
from socialpub.web.http import answer, files
from socialpub.web.http.files import ByteRange


@pytest.mark.parametrize(
    "header",
    [
        b"text/html",
        b"Text/HTML, application/json",
        b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        b"application/json;q=0.5, text/html ; q=0.6",
        b"text/html;level=1;q=0.3",
        b"text/html;q=high",
    ],
)
def test_a_page_that_is_wanted_at_least_as_much_as_json_is_shown(header: bytes) -> None:
    assert answer.prefers_page(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"*/*",
        b"application/json",
        b"text/html;q=0",
        b"text/html;q=0.4, application/json;q=0.5",
        b"application/json, text/html;q=0.9",
        b"text/html5",
    ],
)
def test_everything_else_is_a_script(header: bytes | None) -> None:
    assert not answer.prefers_page(header)


# --- Which bytes a Range header asks for ------------------------------------------------------------------------------


WHOLE = ByteRange(0, 100, False)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"bytes=0-0", ByteRange(0, 1, True)),
        (b"bytes=0-99", ByteRange(0, 100, True)),
        (b"bytes=10-19", ByteRange(10, 20, True)),
        (b"bytes=90-", ByteRange(90, 100, True)),
        (b"bytes=90-1000", ByteRange(90, 100, True)),
        (b"bytes=-10", ByteRange(90, 100, True)),
        (b"bytes=-1000", ByteRange(0, 100, True)),
        (b"Bytes = 5 - 6", ByteRange(5, 7, True)),
    ],
)
def test_one_range_is_a_part(header, expected):
    assert files.parse_range(header, 100) == expected


@pytest.mark.parametrize("header", [b"bytes=100-", b"bytes=100-200", b"bytes=-0"])
def test_a_range_outside_of_the_file_is_none(header):
    assert files.parse_range(header, 100) is None


@pytest.mark.parametrize(
    "header", [None, b"", b"bytes=", b"bytes=-", b"bytes=5", b"bytes=9-1", b"bytes=a-b", b"lines=1-2", b"bytes=0-1,5-6"]
)
def test_several_ranges_other_units_and_nonsense_mean_the_whole_file(header):
    assert files.parse_range(header, 100) == WHOLE


def test_an_empty_file_has_no_part():
    assert files.parse_range(b"bytes=0-", 0) is None
    assert files.parse_range(None, 0) == ByteRange(0, 0, False)


# --- The words that the document explains are those that the rows hold ------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        (requests.ProfileStatus, set(ProfileStatus)),
        (requests.PostStatus, set(PostStatus)),
        (requests.DeliveryStatus, {state.api_status for state in State}),
        (requests.ArtifactStatus, set(ArtifactStatus)),
        (requests.MediaKind, set(ACCEPTED_TYPES.values())),
        (requests.AttemptOutcome, set(AttemptOutcome)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_state_and_kind_has_its_word(shown: Any, known: set[str]) -> None:
    assert set(get_args(get_args(shown.__value__)[0])) == known
