"""An app that TikTok has not audited: its notes, and drafts as the alternative."""

from pathlib import Path
from typing import Any

import pytest

from socialpub.core.settings.schema import NotifySection
from socialpub.ops.notify import send
from socialpub.ops.notify.notifier import Notifier
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import OWNER, accept
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.postbox import Postbox
from tests.support.sandbox_http import artifact, connect_tiktok

DIRECT, SENT = {"mode": "direct", "privacyLevel": "SELF_ONLY"}, {"mode": "draft"}


@pytest.fixture
def video(rt: Runtime, tmp_path: Path) -> DraftMedia:
    return DraftMedia(artifact(rt, media.video_mp4(tmp_path / "a.mp4", width=640, height=360, rate=30), "video/mp4"))


def notes(rt: Runtime, profile: str, video: DraftMedia, options: dict[str, Any]) -> str:
    draft = Draft("Evening light", None, (profile,), (video,), {"tiktok": options})
    (checked,) = drafts.check_draft(rt, rt.db, draft, OWNER)
    assert checked.problems == []
    return " ".join(checked.notes)


def test_validate_notes_the_limits_of_an_unaudited_app(rt, world, video):
    profile = connect_tiktok(rt, world)
    said = notes(rt, profile, video, DIRECT)
    assert "TikTok has not audited this app" in said
    assert "must be “Only me” (SELF_ONLY), and the account itself must be private" in said
    assert "At most five accounts may post directly in 24 hours" in said
    assert "audited" not in notes(rt, profile, video, SENT)


def test_an_audited_app_gets_no_note_about_limits(rt, world, video):
    rt.settings.providers.tiktok.__dict__["audited"] = True
    profile = connect_tiktok(rt, world)
    assert "audited" not in notes(rt, profile, video, DIRECT)
    assert rt.providers["tiktok"].app_limits() is None


def test_the_guidelines_explain_why_an_own_app_stays_unaudited(rt):
    limits = rt.providers["tiktok"].app_limits()
    assert limits is not None
    assert "accounts that you or your team manage" in limits.why
    assert 'mode "draft"' in limits.remedy
    assert "audited = true in [providers.tiktok]" in limits.remedy
    assert [rt.providers[name].app_limits() for name in ("x", "pinterest")] == [None, None]


@pytest.fixture
def postbox(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(send, "send_message", box.send)
    section = NotifySection.model_validate({"urls": ["json://127.0.0.1/owner"], "causes": ["draft"]})
    rt.settings = rt.settings.model_copy(update={"notify": section})
    return box


def told(rt: Runtime, clock: HandClock, minutes: int) -> None:
    notifier = Notifier(rt)
    for _ in range(minutes):
        notifier.run_once()
        clock.forward(60)


def test_the_owner_is_notified_of_the_drafts_in_the_inbox_once_and_together(rt, world, clock, postbox, video):
    profile = connect_tiktok(rt, world)
    told(rt, clock, 3)
    first = accept(rt, profile, body="Evening light", media=(video,), options={"tiktok": SENT})
    accept(rt, profile, body="Morning light", media=(video,), options={"tiktok": SENT})
    drain(rt, clock)
    told(rt, clock, 120)
    assert len(postbox.received) == 1
    assert "A draft is waiting in the TikTok inbox of tiktok profile: “Evening light”." in postbox.last
    assert "“Morning light”" in postbox.last
    assert f"/posts/{first}" in postbox.last
    assert "finish the post there" in postbox.last


def test_a_finished_draft_and_a_direct_post_send_no_notification(rt, world, clock, postbox, video):
    profile = connect_tiktok(rt, world)
    told(rt, clock, 1)
    accept(rt, profile, body="Direct", media=(video,), options={"tiktok": DIRECT})
    post = accept(rt, profile, body="Finished at once", media=(video,), options={"tiktok": SENT})
    drain(rt, clock)
    rt.db.write(
        lambda tx: tx.execute_sql("UPDATE delivery SET provider_post_id = '7' WHERE post_id = ?", (post,)).rowcount
    )
    told(rt, clock, 5)
    assert postbox.received == []
