"""Who is a browser, by the Accept header."""

from typing import get_args

import pytest
from starlette.requests import Request

from socialpub.db.states import ArtifactStatus, PostStatus, ProfileStatus, State
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.media.types import ACCEPTED_TYPES
from socialpub.web.api import requests
from socialpub.web.http.responses import prefers_page


def asking(accept: bytes | None) -> Request:
    return Request({"type": "http", "headers": [] if accept is None else [(b"accept", accept)]})


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
def test_a_page_that_is_wanted_at_least_as_much_as_json_is_shown(header):
    assert prefers_page(asking(header))


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
def test_everything_else_is_a_script(header):
    assert not prefers_page(asking(header))


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
def test_every_state_and_kind_has_its_word(shown, known):
    assert set(get_args(get_args(shown.__value__)[0])) == known
