"""A row may come from a stranger's database: what it calls a storage key never leads out of the media folder."""

import pytest

from socialpub.db.tables import artifact_rows
from socialpub.media import files
from socialpub.providers.base import Kind
from socialpub.publishing.delivery import claim
from socialpub.publishing.media import renditions
from socialpub.publishing.posts.drafts import DraftMedia
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork

OUTSIDE = ["../../../victim.png", "ab/../../../victim.png", "fitted/../../../victim.png", "victim.png", ""]


@pytest.fixture
def network():
    """One that is sent files before the post is made."""
    return ScriptedNetwork(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))


@pytest.fixture
def victim(rt):
    """A file that is not socialpub's, where such keys lead to."""
    path = rt.settings.data_dir.parent / "victim.png"
    path.write_bytes(b"precious")
    return path


@pytest.fixture(params=[*OUTSIDE, "absolute"])
def foreign_key(request, victim):
    return str(victim) if request.param == "absolute" else request.param


@pytest.fixture
def artifact(rt, caller, png, foreign_key):
    """A verified artifact whose row names a file outside."""
    artifact = caller.upload(png, name="holiday.png")
    rt.db.write(lambda tx: tx.execute("UPDATE artifact SET storage_key = ?", (foreign_key,)))
    return artifact


def test_what_is_no_key_is_a_file_that_does_not_exist_inside_the_folder(rt, foreign_key):
    path = rt.files.path(foreign_key)
    assert path.resolve().is_relative_to(rt.files.root.resolve())
    with pytest.raises(FileNotFoundError):
        rt.files.open(foreign_key)


def test_nothing_outside_is_removed_and_the_log_says_so(rt, victim, foreign_key, caplog):
    rt.files.remove(foreign_key)
    assert victim.exists()
    assert "no storage key" in caplog.text


def test_nothing_outside_is_written(rt, victim, foreign_key):
    with pytest.raises(ValueError, match="storage key"), rt.files.receive() as incoming:
        incoming.write(b"hostile")
        incoming.keep(foreign_key)
    assert victim.read_bytes() == b"precious"
    assert not [path for path in rt.files.root.rglob("*") if path.is_file()]


def test_a_read_url_of_such_a_row_is_a_404(rt, caller, artifact, profile, victim):
    post = caller.post(
        "/posts", {"post": {}, "profiles": [profile], "media": [{"artifactId": artifact["artifactId"]}]}
    ).data
    reply = caller.ask("GET", post["media"][0]["url"])
    assert reply.status == 404, reply.body
    assert reply.json()["code"] == "notFound"


def test_a_delivery_with_such_a_file_fails_naming_it(rt, artifact, profile):
    post = accept(rt, profile, media=(DraftMedia(artifact["artifactId"]),))
    drain(rt)
    assert state_of(rt, post) == "failed"
    assert "holiday.png" in message_of(rt, post)
    assert "missing" in message_of(rt, post)


def test_bytes_that_such_a_row_says_arrived_are_gone(rt, caller, png, victim, foreign_key):
    reservation = caller.reserve(len(b"precious"))
    caller.put(reservation, b"precious")
    rt.db.write(lambda tx: tx.execute("UPDATE artifact SET storage_key = ?", (foreign_key,)))
    reply = caller.complete(reservation)
    assert (reply.status, "has lost its bytes" in reply.json()["detail"]) == (400, True)
    assert caller.put(reservation, b"precious").status == 200
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("delivery_id", ["../..", "../../..", "..", ".", "", "a/../../.."])
def test_a_delivery_of_a_stranger_names_no_folder_either(rt, victim, delivery_id):
    folder = rt.settings.media_dir / files.RENDITIONS / "mine"
    folder.mkdir(parents=True)
    (folder / "version").write_bytes(b"kept")
    renditions.forget(rt, delivery_id)
    assert victim.exists()
    assert rt.settings.database_file.exists()
    assert (folder / "version").exists()


def test_no_mark_is_left_under_such_an_id(rt, monkeypatch):
    monkeypatch.setattr(type(rt.process), "follows_a_death", True)
    with claim.mark_examination(rt, "../../../mark"):
        assert not list(rt.settings.data_dir.parent.rglob("mark*"))


def test_keys_of_our_own_are_keys(rt):
    for mime_type in ("image/jpeg", "video/quicktime", "video/webm"):
        key = rt.files.new_key("019aa5c0-0000-7000-8000-0000000000ab", mime_type)
        assert files.is_storage_key(key)
        assert rt.files.path(key) == rt.files.root / key
    key = files.rendition_key("019aa5c0-0000-7000-8000-0000000000ab", "0" * 24)
    assert rt.files.path(key) == rt.files.root / key
    assert artifact_rows.verified_type(rt.reader, key) is None and renditions.rendition_type(rt, key) is None
