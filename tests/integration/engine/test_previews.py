"""What the owner is shown of a post before and after it is accepted: every network once, and only what is there."""

import pytest

from socialpub.db.models import ArtifactRow, ProfileRow
from socialpub.publishing.posts import previews
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from tests.samples import media
from tests.support.appliance import accept, add_profile
from tests.support.sandbox_http import artifact

BOARD = {"pinterest": {"boardId": "2000000000000000001", "title": "Poster"}}


@pytest.fixture
def appliance_options(sandbox_options):
    return sandbox_options


def text_of(one):
    return "".join(part.text for part in one.shown.text)


def test_profiles_with_equal_previews_share_one(rt):
    first, second = add_profile(rt, "x", "1", name="One"), add_profile(rt, "x", "2", name="Two")
    pin = add_profile(rt, "pinterest", "3", options={"link": "https://studio.example/"})
    found = previews.draft_previews(rt, rt.db, Draft("Hello", None, (first, pin, second), (), BOARD))
    assert [(one.provider, [profile.name for profile in one.profiles]) for one in found] == [
        ("x", ["One", "Two"]),
        ("pinterest", ["pinterest profile"]),
    ]
    assert (found[1].label, found[1].shown.title, found[1].shown.link) == ("Pinterest", "Poster", "studio.example")


def test_a_preview_leaves_out_unknown_profiles_and_media(rt, tmp_path):
    profile = add_profile(rt)
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    unknown = "01a12f57-1a80-7074-9d08-074dfc0027ba"
    draft = Draft("Hello", None, (profile, unknown), (DraftMedia(unknown), DraftMedia(photo, "A view")))
    (one,) = previews.draft_previews(rt, rt.db, draft)
    assert [(item.number, item.alt, item.artifact_id) for item in one.media] == [(1, "A view", photo)]


def test_a_preview_measures_also_a_text_that_is_too_long(rt):
    profile = add_profile(rt, "pinterest")
    draft = Draft("Hello", None, (profile,), (), {"pinterest": {"title": "t" * 130}})
    (one,) = previews.draft_previews(rt, rt.db, draft)
    assert [(found.label, found.left) for found in one.shown.measures] == [("Description", 795), ("Title", -30)]


def test_an_accepted_post_is_shown_with_the_options_that_it_keeps(rt, tmp_path):
    profile = add_profile(rt, "pinterest")
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    post = accept(rt, profile, body="Later", media=(DraftMedia(photo),), options=BOARD)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, options={"title": "Another"}))
    (one,) = previews.post_previews(rt, rt.db, post)
    assert (text_of(one), one.shown.title, one.media[0].artifact_id) == ("Later", "Poster", photo)

    rt.db.write(lambda tx: tx.update(ArtifactRow, photo, removed_at=tx.stamp))
    (one,) = previews.post_previews(rt, rt.db, post)
    assert (one.media[0].kind, one.media[0].artifact_id) == ("image", None)
