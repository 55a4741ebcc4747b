"""The words that the document explains are those that the rows hold."""

from typing import Any, get_args

import pytest

from socialpub.db.states import ArtifactStatus, PostStatus, ProfileStatus, State
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.media.types import ACCEPTED_TYPES
from socialpub.web.api import requests


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        (requests.ProfileStatus, set(ProfileStatus)),
        (requests.PostStatus, set(PostStatus)),
        (requests.DeliveryStatus, {state.outside for state in State}),
        (requests.ArtifactStatus, set(ArtifactStatus)),
        (requests.MediaKind, set(ACCEPTED_TYPES.values())),
        (requests.AttemptOutcome, set(AttemptOutcome)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_state_and_kind_has_its_word(shown: Any, known: set[str]) -> None:
    assert set(get_args(get_args(shown.__value__)[0])) == known
