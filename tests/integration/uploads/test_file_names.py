"""What a file is called decides nothing: not where it lies, not what it is, not what it overwrites."""

from pathlib import Path

import pytest

from socialpub.runtime import Runtime
from tests.integration.uploads.caller import Caller
from tests.samples import media

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
    """Every file that is no media, and no lock of a process."""
    own = (rt.settings.media_dir, rt.settings.run_dir)
    return {path for path in folder.rglob("*") if path.is_file() and not any(map(path.is_relative_to, own))}


def test_a_file_is_stored_under_a_name_of_ours_whatever_it_was_called(
    caller: Caller, rt: Runtime, tmp_path: Path
) -> None:
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
    assert "content-disposition" not in reply.headers, "no browser is told another name"


@pytest.mark.parametrize("name", ["", "x" * 256, "\ud800.png"])
def test_a_name_has_a_length_and_is_text(caller: Caller, name: str) -> None:
    reply = caller.post("/uploads", {"fileName": name, "mimeType": "image/png", "fileSize": 10})
    assert reply.status == 400
    assert reply.paths() == [["fileName"]]
