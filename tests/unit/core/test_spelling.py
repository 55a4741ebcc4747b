"""The name that was meant."""

import pytest

from socialpub.core.validation import nearest

KEYS = ("accessToken", "refreshToken", "expiresAt")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("acessToken", "accessToken"),
        ("access_token", "accessToken"),
        ("REFRESHTOKEN", "refreshToken"),
        ("expires_in", "expiresAt"),
        ("zzzz", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_found_whatever_its_case_and_underscores(given: str, meant: str | None) -> None:
    assert nearest(given, KEYS) == meant
