"""TikTok as far as it is built: options, rules and tokens; publishing says that it is not there."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from socialpub.providers.base import Account, Content, MediaFile, Problem, Refused
from socialpub.providers.errors import AuthExpired, ProviderError, RateLimited, Rejected, Unavailable
from socialpub.providers.http import Answer
from socialpub.providers.tiktok import NOT_BUILT, TikTok
from socialpub.sections import TikTok as Section
from tests.answering import Answering

OWNER = Account("oid", "owner")
DIRECT = {"privacyLevel": "SELF_ONLY"}


@pytest.fixture
def tiktok() -> TikTok:
    return TikTok(Section(client_key="ck", client_secret=SecretStr("cs-secret"), api_url="https://tiktok.test"))


def photo(position: int = 0, **facts: Any) -> MediaFile:
    mime_type = facts.pop("mime_type", "image/jpeg")
    return MediaFile(position, "image", mime_type, 1000, Path("photo"), "photo.jpg", facts=facts)


def video(mime_type: str = "video/mp4", **facts: Any) -> MediaFile:
    good = {"width": 1080, "height": 1920, "duration_seconds": 30.0, "frame_rate": 30.0}
    return MediaFile(0, "video", mime_type, 1000, Path("video"), "video.mp4", facts={**good, **facts})


def found(tiktok: TikTok, content: Content, options: dict[str, Any], account: Account = OWNER) -> list[Problem]:
    """The problems before the last one, which always says that publishing is not built."""
    *others, last = tiktok.check(content, options, account)
    assert last == Problem(("profiles",), NOT_BUILT)
    return others


# --- options and rules -----------------------------------------------------------------------------------------------


def test_a_post_without_any_fault_is_still_told_that_publishing_is_not_built(tiktok: TikTok) -> None:
    content = Content("A clip", (video(),))
    assert found(tiktok, content, DIRECT) == []
    assert tiktok.plan(content, DIRECT) == ()
    assert tiktok.run("anything", None) == Refused(NOT_BUILT)  # type: ignore[arg-type]


def test_a_direct_post_needs_a_privacy_level_and_never_gets_one_of_ours(tiktok: TikTok) -> None:
    (problem,) = found(tiktok, Content("A clip", (video(),)), {})
    assert problem.path == ("providerOptions", "tiktok", "privacyLevel")
    assert "PUBLIC_TO_EVERYONE" in problem.message


def test_a_draft_needs_no_privacy_level(tiktok: TikTok) -> None:
    assert found(tiktok, Content("A clip", (video(),)), {"mode": "draft"}) == []


def test_a_misspelt_privacy_level_is_refused_and_not_used(tiktok: TikTok) -> None:
    options, problems = tiktok.read_options({"privacy_level": "SELF_ONY", "privacyLevl": "SELF_ONLY"})
    assert options == {}
    assert "SELF_ONLY" in problems[0].message
    assert "privacyLevel" in problems[1].message


def test_every_key_of_the_contract_is_read_in_both_spellings(tiktok: TikTok) -> None:
    given = {
        "mode": "direct",
        "privacy_level": "SELF_ONLY",
        "title": "A title",
        "disable_comment": True,
        "disable_duet": True,
        "disable_stitch": False,
        "video_cover_timestamp_ms": 1500,
        "photo_cover_index": 1,
        "auto_add_music": True,
        "brand_content_toggle": False,
        "brand_organic_toggle": False,
        "is_aigc": True,
    }
    options, problems = tiktok.read_options(given)
    assert problems == []
    assert set(options) == {
        *("mode", "privacyLevel", "title", "disableComment", "disableDuet", "disableStitch"),
        *("videoCoverTimestampMs", "photoCoverIndex", "autoAddMusic"),
        *("brandContentToggle", "brandOrganicToggle", "isAigc"),
    }
    assert tiktok.read_options(options) == (options, [])


def test_a_paid_partnership_cannot_be_private(tiktok: TikTok) -> None:
    (problem,) = found(tiktok, Content("", (video(),)), {**DIRECT, "brandContentToggle": True})
    assert problem.path[-1] == "brandContentToggle"


@pytest.mark.parametrize(
    ("media", "path", "says"),
    [
        ((), ("media",), "needs media"),
        ((video(), photo(1)), ("media",), "one video alone"),
        (tuple(photo(i) for i in range(36)), ("media",), "at most 35 photos, not 36"),
        ((video(duration_seconds=601.0),), ("media", 0), "at most 600 seconds and lasts 601.0"),
        ((video(frame_rate=15.0),), ("media", 0), "23 to 60 frames per second and has 15"),
        ((video(width=320, height=320),), ("media", 0), "320×320"),
        ((photo(mime_type="image/gif", frames=9),), ("media", 0), "animated GIF"),
    ],
)
def test_media_beyond_the_limits_are_named_with_limit_and_found_value(
    tiktok: TikTok, media: tuple[MediaFile, ...], path: tuple[Any, ...], says: str
) -> None:
    (problem,) = found(tiktok, Content("", media), DIRECT)
    assert problem.path == path
    assert says in problem.message


def test_a_caption_is_counted_in_utf16_units(tiktok: TikTok) -> None:
    assert found(tiktok, Content("👋" * 1100, (video(),)), DIRECT) == []
    (problem,) = found(tiktok, Content("👋" * 1101, (video(),)), DIRECT)
    assert problem.path == ("post", "body")
    assert "2200" in problem.message
    assert "2202" in problem.message


def test_photos_have_room_for_a_longer_text_and_their_cover_must_be_one_of_them(tiktok: TikTok) -> None:
    content = Content("x" * 4000, (photo(0), photo(1)))
    assert found(tiktok, content, {**DIRECT, "photoCoverIndex": 1}) == []
    (problem,) = found(tiktok, content, {**DIRECT, "photoCoverIndex": 2})
    assert problem.path[-1] == "photoCoverIndex"


def test_a_grant_without_the_scope_of_the_mode_is_said(tiktok: TikTok) -> None:
    drafts_only = Account("oid", scopes=frozenset({"user.info.basic", "video.upload"}))
    (problem,) = found(tiktok, Content("", (video(),)), DIRECT, drafts_only)
    assert "video.publish" in problem.message
    assert found(tiktok, Content("", (video(),)), {"mode": "draft"}, drafts_only) == []
    assert tiktok.oauth.can_publish(drafts_only.scopes)
    assert not tiktok.oauth.can_publish(frozenset({"user.info.basic"}))
    assert len(tiktok.oauth.missing_scopes(drafts_only.scopes)) == 1
    assert tiktok.oauth.missing_scopes(frozenset()) == []


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_only_fields_within_the_granted_scopes_are_asked_for(tiktok: TikTok) -> None:
    user = {"open_id": "oid", "union_id": "u", "display_name": "Owner", "avatar_url": "https://cdn.test/a"}
    body = {"data": {"user": user}, "error": {"code": "ok", "message": "", "log_id": "1"}}
    http = Answering(body)
    identity = tiktok.oauth.identify(http, "act.1", frozenset({"user.info.basic"}))
    assert (identity.account_id, identity.name, identity.username) == ("oid", "Owner", None)
    assert http.calls[0]["params"] == {"fields": "open_id,union_id,display_name,avatar_url"}
    assert http.calls[0]["url"] == "https://tiktok.test/v2/user/info/"

    tiktok.oauth.identify(Answering(body, calls=http.calls), "act.1", frozenset({"user.info.profile"}))
    assert http.calls[1]["params"]["fields"].endswith(",username")


@pytest.mark.parametrize(
    ("status", "code", "kind", "reauth"),
    [
        (401, "access_token_invalid", AuthExpired, None),
        (200, "access_token_invalid", AuthExpired, None),
        (401, "scope_not_authorized", Rejected, True),
        (400, "scope_permission_missed", Rejected, True),
        (429, "rate_limit_exceeded", RateLimited, None),
        (500, "internal_error", Unavailable, None),
        (400, "invalid_params", Rejected, False),
        (200, "never_heard_of", Rejected, False),
    ],
)
def test_an_envelope_is_judged_by_its_code_and_not_by_its_status(
    tiktok: TikTok, status: int, code: str, kind: type[ProviderError], reauth: bool | None
) -> None:
    http = Answering({"data": {}, "error": {"code": code, "message": "why", "log_id": "log1"}}, status=status)
    with pytest.raises(ProviderError) as caught:
        tiktok.oauth.identify(http, "act.1", frozenset())
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.request_id) == (code, "log1")
    assert getattr(caught.value, "reauth", None) == reauth


@pytest.mark.parametrize(("status", "kind"), [(502, Unavailable), (200, Unavailable), (429, RateLimited)])
def test_a_page_instead_of_an_answer_is_judged_by_its_status(
    tiktok: TikTok, status: int, kind: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError) as caught:
        tiktok.oauth.identify(Answering(Answer(status, {}, b"<html>")), "act.1", frozenset())
    assert type(caught.value) is kind


def test_a_refresh_brings_a_new_pair_and_sends_the_credentials_in_the_body(tiktok: TikTok) -> None:
    http = Answering(
        {
            "open_id": "oid",
            "scope": "user.info.basic,video.upload",
            "access_token": "act.2",
            "expires_in": 86400,
            "refresh_token": "rft.2",
            "refresh_expires_in": 31536000,
        }
    )
    tokens = tiktok.oauth.refresh(http, "rft.1")
    assert (tokens.access_token, tokens.refresh_token) == ("act.2", "rft.2")
    assert (tokens.expires_in_seconds, tokens.refresh_expires_in_seconds) == (86400, 31536000)
    assert tokens.scopes == {"user.info.basic", "video.upload"}
    assert http.calls[0]["form"] == {
        "client_key": "ck",
        "client_secret": "cs-secret",
        "grant_type": "refresh_token",
        "refresh_token": "rft.1",
    }


def test_a_refresh_without_a_new_refresh_token_leaves_the_old_one_alone(tiktok: TikTok) -> None:
    assert tiktok.oauth.refresh(Answering({"access_token": "act.2"}), "rft.1").refresh_token is None


@pytest.mark.parametrize(
    ("status", "error", "kind", "reauth"),
    [
        (400, "invalid_grant", Rejected, True),
        (200, "invalid_grant", Rejected, True),
        (401, "invalid_client", Rejected, False),
        (400, "invalid_request", Rejected, False),
        (400, "unauthorized_client", Rejected, False),
        (200, "server_error", Unavailable, None),
        (503, "temporarily_unavailable", Unavailable, None),
    ],
)
def test_only_a_dead_refresh_token_sends_the_owner_to_connect_again(
    tiktok: TikTok, status: int, error: str, kind: type[ProviderError], reauth: bool | None
) -> None:
    body = {"error": error, "error_description": "because", "log_id": "log2"}
    with pytest.raises(ProviderError) as caught:
        tiktok.oauth.refresh(Answering(body, status=status), "rft.1")
    assert type(caught.value) is kind
    assert getattr(caught.value, "reauth", None) == reauth
    assert "rft.1" not in caught.value.message
    assert "cs-secret" not in caught.value.message


def test_revoking_sends_the_access_token_and_takes_an_empty_body_for_yes(tiktok: TikTok) -> None:
    http = Answering(Answer(200, {}, b""))
    tiktok.oauth.revoke(http, "act.1", "rft.1")
    assert http.calls[0]["form"]["token"] == "act.1"
    refusal = Answer(200, {}, json.dumps({"error": "invalid_client"}).encode())
    with pytest.raises(Rejected):
        tiktok.oauth.revoke(Answering(refusal), "act.1", None)
