"""Unused files are removed, and files of posts stay (contract 5.7)."""

from datetime import timedelta

import pytest

from socialpub.db.tables import artifact_rows
from socialpub.publishing import retention
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import DraftMedia
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_one, select_value

DAY = 24 * 3600


def files_of(rt):
    return [path for path in rt.settings.media_dir.rglob("*") if path.is_file()]


def status_of(rt, artifact):
    row = artifact_rows.find(rt.db, artifact["artifactId"])
    return row and row.status


def test_a_reservation_that_is_not_completed_in_a_day_is_removed(rt, clock, caller, png):
    empty, filled = caller.reserve(png), caller.reserve(png)
    caller.put(filled, png)
    clock.forward(DAY - 1)
    assert retention.remove_unused_media(rt) == 0
    assert len(files_of(rt)) == 1
    clock.forward(1)
    assert retention.remove_unused_media(rt) == 1
    assert files_of(rt) == []
    assert [status_of(rt, empty), status_of(rt, filled)] == [None, None]
    assert caller.complete(filled).status == 400


def test_an_artifact_that_no_post_references_is_removed_after_thirty_days(rt, clock, caller, png):
    artifact = caller.upload(png)
    clock.forward(30 * DAY - 1)
    assert retention.remove_unused_media(rt) == 0
    clock.forward(1)
    assert retention.remove_unused_media(rt) == 1
    assert (files_of(rt), status_of(rt, artifact)) == ([], None)


def test_an_artifact_that_a_post_needs_is_never_removed(rt, clock, caller, profile, png):
    artifact = caller.upload(png)
    accept(rt, profile, at=clock.now() + timedelta(days=400), media=(DraftMedia(artifact["artifactId"]),))
    clock.forward(399 * DAY)
    assert retention.remove_unused_media(rt) == 0
    assert status_of(rt, artifact) == "verified"
    assert len(files_of(rt)) == 1


def test_an_artifact_that_only_the_options_of_an_open_post_name_is_never_removed(rt, clock, caller, png):
    artifact = caller.upload(png)["artifactId"]
    options = {"pinterest": {"boardId": "1", "cover_artifact_id": artifact}}
    accept(rt, add_profile(rt, "pinterest"), options=options, at=clock.now() + timedelta(days=400))
    clock.forward(399 * DAY)
    assert retention.remove_unused_media(rt) == 0
    key = select_value(rt.db, "SELECT storage_key FROM artifact WHERE id = ?", (artifact,))
    assert rt.write(lambda rt, tx: artifact_rows.note_removed(tx, key)) is False
    rt.write(lambda rt, tx: tx.execute_sql("UPDATE delivery SET state = 'canceled'"))
    assert retention.remove_unused_media(rt) == 1


def test_a_rejected_upload_is_remembered_for_a_while(rt, clock, caller):
    reservation = caller.reserve(4)
    caller.put(reservation, b"liar")
    caller.complete(reservation)
    clock.forward(2 * DAY)
    retention.remove_unused_media(rt)
    assert status_of(rt, reservation) == "rejected"
    clock.forward(30 * DAY)
    retention.remove_unused_media(rt)
    assert status_of(rt, reservation) is None


def test_an_artifact_that_a_post_uses_after_the_search_stays(rt, clock, caller, profile, png, monkeypatch):
    artifact = caller.upload(png)
    clock.forward(31 * DAY)
    delete = artifact_rows.delete_unused

    def late(tx, *args):
        tx.execute_sql(
            "INSERT INTO media (id, post_id, position, artifact_id) VALUES ('m', 'p', 0, ?)", (artifact["artifactId"],)
        )
        return delete(tx, *args)

    monkeypatch.setattr(artifact_rows, "delete_unused", late)
    assert retention.remove_unused_media(rt) == 0
    assert status_of(rt, artifact) == "verified"


def test_files_without_a_row_are_removed(rt, caller, png):
    caller.upload(png)
    row = select_one(rt.db, "SELECT storage_key FROM artifact")
    stray = rt.files.path(row[0]).with_name(f"019aa5c0-0000-7000-8000-0000000000ab-{'0' * 16}.png")
    stray.write_bytes(b"left by a crash between the rename and the row")
    assert retention.remove_unused_media(rt) == 1
    assert files_of(rt) == [rt.files.path(row[0])]


# --- keep_after_settled ----------------------------------------------------------------------------------------------


@pytest.fixture
def tidy(tmp_path, clock):
    """An appliance that keeps media for a week after a post has settled."""
    (tmp_path / "tidy").mkdir()
    rt = open_appliance(
        tmp_path / "tidy", clock, providers={"x": ScriptedNetwork()}, media={"keep_after_settled": "7d"}
    )
    yield rt
    rt.close()


@pytest.fixture
def tidy_caller(tidy):
    from socialpub.accounts import api_keys
    from socialpub.web.http.app import create_app
    from tests.integration.uploads.caller import Caller

    with Caller(create_app(tidy), tidy.write(api_keys.create, "test")) as caller:
        yield caller


def test_by_default_media_stay_for_ever(rt, clock, caller, profile, png):
    artifact = caller.upload(png)
    accept(rt, profile, media=(DraftMedia(artifact["artifactId"]),))
    drain(rt, clock)
    clock.forward(1000 * DAY)
    assert retention.remove_unused_media(rt) == 0


def test_the_bytes_of_settled_posts_are_removed_if_configured(tidy, clock, tidy_caller, png):
    artifact = tidy_caller.upload(png)
    profile = add_profile(tidy)
    post = accept(tidy, profile, media=(DraftMedia(artifact["artifactId"]),))
    drain(tidy, clock)
    clock.forward(7 * DAY - 3600)
    assert retention.remove_unused_media(tidy) == 0
    clock.forward(3601)
    assert retention.remove_unused_media(tidy) == 1
    assert files_of(tidy) == []
    shown = tidy_caller.get(f"/posts/{post}").data["media"][0]
    assert "url" not in shown
    assert (shown["artifactStatus"], shown["contentType"]) == ("verified", "image/png")
    again = tidy_caller.post(
        "/posts", {"post": {}, "profiles": [profile], "media": [{"artifactId": artifact["artifactId"]}]}
    )
    assert (again.status, again.paths()) == (400, [["media", 0, "artifactId"]])
    assert tidy_caller.complete(artifact).status == 400
    assert retention.remove_unused_media(tidy) == 0


def test_bytes_that_another_post_still_needs_stay(tidy, clock, tidy_caller, png):
    artifact = tidy_caller.upload(png)
    profile = add_profile(tidy)
    use = (DraftMedia(artifact["artifactId"]),)
    accept(tidy, profile, media=use)
    drain(tidy, clock)
    accept(tidy, profile, at=clock.now() + timedelta(days=60), media=use)
    clock.forward(30 * DAY)
    assert retention.remove_unused_media(tidy) == 0
    assert len(files_of(tidy)) == 1


# --- since when nothing uses it -------------------------------------------------------------------------------------


def ages(rt, clock, days):
    return sum(retention.remove_unused_media(rt) for _ in range(days) if clock.forward(DAY) is None)


def test_media_that_an_edit_removes_are_unused_from_then_on(rt, clock, caller, profile, png):
    kept, dropped = caller.upload(png)["artifactId"], caller.upload(png)["artifactId"]
    both = [{"artifactId": kept}, {"artifactId": dropped}]
    at = (clock.now() + timedelta(days=300)).isoformat()
    post = caller.post("/posts", {"post": {"scheduledAt": at}, "profiles": [profile], "media": both}).data["id"]
    assert ages(rt, clock, 100) == 0
    assert caller.patch(f"/posts/{post}", {"media": both[:1]}).status == 200
    assert ages(rt, clock, 29) == 0
    assert caller.patch(f"/posts/{post}", {"media": both}).status == 200
    assert caller.patch(f"/posts/{post}", {"media": both[:1]}).status == 200
    assert ages(rt, clock, 29) == 0
    assert ages(rt, clock, 1) == 1
    assert select_all(rt.db, "SELECT id FROM artifact")[0][0] == kept


@pytest.mark.parametrize("ending", ["patch", "cancel", "settle"])
def test_media_in_options_are_unused_after_an_edit_or_the_end_of_the_post(rt, clock, caller, png, ending):
    artifact = caller.upload(png)["artifactId"]
    pinterest = add_profile(rt, "pinterest")
    at = clock.now() + timedelta(days=100)
    options = {"pinterest": {"boardId": "1", "coverArtifactId": artifact}}
    post = accept(rt, pinterest, options=options, at=at)
    assert ages(rt, clock, 99) == 0
    if ending == "patch":
        assert caller.patch(f"/posts/{post}", {"providerOptions": {"pinterest": {"boardId": "1"}}}).status == 200
    elif ending == "cancel":
        assert caller.post(f"/posts/{post}/cancel", {}).status == 200
    else:
        rt.write(posts.stop, post)
    assert ages(rt, clock, 29) == 0
    assert ages(rt, clock, 1) == 1


def test_setting_the_clock_does_not_age_unused_media(rt, clock, caller, profile, png):
    artifact = caller.upload(png)["artifactId"]
    post = accept(rt, profile, at=clock.now() + timedelta(days=300), media=(DraftMedia(artifact),), body="Hello")
    assert ages(rt, clock, 100) == 0
    assert caller.patch(f"/posts/{post}", {"media": []}).status == 200
    clock.jump(20 * DAY)
    assert ages(rt, clock, 29) == 0
    assert ages(rt, clock, 1) == 1
