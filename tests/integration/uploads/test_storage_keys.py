"""A storage key of a foreign database never leads out of the media folder."""

from pathlib import Path

import pytest

from socialpub.media import files
from socialpub.providers.base import Kind
from socialpub.publishing.media import renditions
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.scripted_network import ScriptedNetwork

OUTSIDE = ["../../../victim.png", "ab/../../../victim.png", "fitted/../../../victim.png", "victim.png", ""]


@pytest.fixture
def network():
    """A network that receives files before the post."""
    return ScriptedNetwork(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))


@pytest.fixture
def victim(rt):
    """A foreign file, to which such keys lead."""
    path = rt.settings.data_dir.parent / "victim.png"
    path.write_bytes(b"precious")
    return path


@pytest.fixture(params=[*OUTSIDE, "absolute"])
def foreign_key(request, victim):
    return str(victim) if request.param == "absolute" else request.param


@pytest.fixture
def artifact(rt, caller, png, foreign_key):
    """A verified artifact whose row names a file outside the media folder."""
    artifact = caller.upload(png, name="holiday.png")
    rt.db.write(lambda tx: tx.execute_sql("UPDATE artifact SET storage_key = ?", (foreign_key,)))
    return artifact


def test_an_invalid_key_is_a_missing_file_inside_the_folder(rt, foreign_key):
    path = rt.files.path(foreign_key)
    assert path.resolve().is_relative_to(rt.files.root.resolve())
    with pytest.raises(FileNotFoundError):
        rt.files.path(foreign_key).stat()


def test_no_file_outside_is_removed_and_a_warning_is_logged(rt, victim, foreign_key, caplog):
    rt.files.remove(foreign_key)
    assert victim.exists()
    assert "invalid storage key" in caplog.text


def test_no_file_outside_is_written(rt, victim, foreign_key):
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


@pytest.mark.parametrize("delivery_id", ["../..", "../../..", "..", ".", "", "a/../../.."])
def test_a_foreign_delivery_id_is_no_folder(rt, victim, delivery_id):
    folder = rt.settings.media_dir / files.RENDITIONS / "mine"
    folder.mkdir(parents=True)
    (folder / "version").write_bytes(b"kept")
    renditions.forget(rt, delivery_id)
    assert victim.exists()
    assert rt.settings.database_file.exists()
    assert (folder / "version").exists()


# --- What a file is called decides nothing: not where it lies, not what it is, not what it overwrites -----------------


HOSTILE = [
    "../../../etc/passwd",
    "..\\..\\secret.key",
    "/var/lib/socialpub/secret.key",
    "a.php.png",
    "a.png;.php",
    ".htaccess",
    "con.png",
    "a.png%00.php",
    "<script>alert(1)</script>.png",
    "'; DROP TABLE artifact; --.png",
    "$(reboot).png",
    "-rf.png",
    "😀.png",
    "x" * 200 + ".svg",
]


def elsewhere(rt: Runtime, folder: Path) -> set[Path]:
    """Return every file except media and lock files."""
    own = (rt.settings.media_dir, rt.settings.run_dir)
    return {path for path in folder.rglob("*") if path.is_file() and not any(map(path.is_relative_to, own))}


def test_a_file_is_stored_under_a_generated_name(caller, rt, tmp_path):
    content = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    before = elsewhere(rt, tmp_path)
    reserved = [caller.reserve(content, "image/png", name) for name in HOSTILE]
    assert [caller.put(one, content).status for one in reserved] == [200] * len(HOSTILE)
    artifact = caller.complete(reserved[0]).data
    assert elsewhere(rt, tmp_path) == before
    stored = [path for path in rt.settings.media_dir.rglob("*") if path.is_file() and path.read_bytes() == content]
    assert len(stored) == len(HOSTILE)
    for path in stored:
        assert path.stem.replace("-", "").isalnum()
        assert path.suffix == ".png"
        assert not path.stat().st_mode & 0o177
    reply = caller.ask("GET", artifact["url"])
    assert (reply.headers["content-type"], reply.body) == ("image/png", content)
    assert "content-disposition" not in reply.headers, "no browser gets another name"


@pytest.mark.parametrize("name", ["", "x" * 256, "\ud800.png"])
def test_a_name_has_a_length_and_is_text(caller, name):
    reply = caller.post("/uploads", {"fileName": name, "mimeType": "image/png", "fileSize": 10})
    assert reply.status == 400
    assert reply.paths() == [["fileName"]]
