"""A full quota rejects new files and does not affect accepted posts."""

import json
from pathlib import Path
from typing import Any

import pytest

from socialpub.db.tables import artifact_rows
from socialpub.ops import storage
from socialpub.publishing import retention
from socialpub.runtime import Runtime
from tests.integration.uploads.caller import Caller, Reply
from tests.samples import media
from tests.support.appliance import status_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

DAY = 24 * 3600
QUOTA = 100_000


@pytest.fixture
def appliance_options() -> dict[str, Any]:
    return {"providers": {"x": ScriptedNetwork()}, "storage": {"quota": QUOTA}, "media": {"keep_after_settled": "7d"}}


@pytest.fixture
def picture(tmp_path: Path) -> bytes:
    """An image above a third of the quota."""
    data = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    return data + b"\0" * (QUOTA // 3 + 1000 - len(data))


def is_refused(reply: Reply) -> bool:
    if reply.status != 503:
        return False
    problem = json.loads(reply.body)
    assert problem["code"] == "unavailable"
    assert int(reply.headers["retry-after"]) == 3600
    for said in ("97.7 KiB (100000 bytes)", "storage.quota", "media.keep_after_settled", "used"):
        assert said in problem["detail"]
    return True


def reserve(caller: Caller, size: int) -> Reply:
    return caller.post("/uploads", {"fileName": "a.png", "mimeType": "image/png", "fileSize": size})


def stored(rt: Runtime) -> tuple[int, int]:
    counted = artifact_rows.stored(rt.db)
    files = [path for path in rt.settings.media_dir.rglob("*.png") if path.is_file()]
    assert counted == (len(files), sum(path.stat().st_size for path in files))
    return counted


def test_above_the_quota_uploads_are_rejected_and_accepted_posts_are_published(rt, clock, caller, profile, picture):
    artifacts = [caller.upload(picture)["artifactId"] for _ in range(2)]
    assert is_refused(reserve(caller, len(picture)))
    assert reserve(caller, QUOTA - 2 * len(picture)).status == 201
    assert is_refused(reserve(caller, QUOTA - 2 * len(picture) + 1))
    shown = [{"artifactId": artifact} for artifact in artifacts]
    answers = [
        caller.post("/posts", {"post": {"body": "Words only"}, "profiles": [profile]}),
        caller.post("/posts", {"post": {"body": "With known files"}, "profiles": [profile], "media": shown}),
    ]
    assert [answer.status for answer in answers] == [201, 201]
    drain(rt, clock)
    assert [status_of(rt, answer.data["id"]) for answer in answers] == ["settled", "settled"]
    clock.forward(8 * DAY)
    assert retention.remove_unused_media(rt) == 2
    assert stored(rt) == (0, 0)
    assert reserve(caller, len(picture)).status == 201


def test_the_quota_is_checked_again_when_bytes_arrive(rt, caller, picture):
    reservations = [caller.reserve(picture) for _ in range(3)]
    assert [caller.put(one, picture).status for one in reservations[:2]] == [200, 200]
    assert is_refused(caller.put(reservations[2], picture))
    assert caller.put(reservations[0], picture).status == 200, "the same bytes again take no more room"
    assert stored(rt) == (2, 2 * len(picture))


def test_the_first_of_two_simultaneous_files_gets_the_remaining_quota(rt, caller, picture):
    caller.upload(picture)
    first, second = caller.reserve(picture), caller.reserve(picture)
    met: list[Reply] = []

    async def meanwhile() -> None:
        met.append(await caller.putting(second, picture))

    async def story() -> Reply:
        return await caller.asking(
            "PUT", first["uploadUrl"], [picture[:1000], picture[1000:]], first["requiredHeaders"], before_last=meanwhile
        )

    assert caller.run(story()).status == 200
    assert is_refused(met[0])
    assert stored(rt) == (2, 2 * len(picture))
    assert rt.media.arriving_bytes == 0


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_a_post_that_brings_its_files_is_rejected_as_a_whole(rt, caller, profile, picture, chunked, large):
    for _ in range(2):
        caller.upload(picture)
    data = picture + b"\0" * 1_100_000 if large else picture
    payload = {"post": {"body": "Hi"}, "profiles": [profile], "media": [{"fileField": "file"}]}
    body = (
        b'--b\r\ncontent-disposition: form-data; name="payload"\r\n\r\n%b\r\n'
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n%b\r\n'
        b"--b--\r\n" % (json.dumps(payload).encode(), data)
    )
    headers = {"authorization": f"Bearer {caller.key}", "content-type": "multipart/form-data; boundary=b"}
    assert is_refused(caller.ask("POST", "/api/v1/posts", [body] if chunked else body, headers))
    assert select_value(rt.db, "SELECT count(*) FROM post") == 0
    assert stored(rt) == (2, 2 * len(picture))


@pytest.mark.parametrize(
    ("used", "level"), [(0, "ok"), (QUOTA * 8 // 10, "ok"), (QUOTA * 9 // 10, "note"), (QUOTA, "problem")]
)
def test_doctor_reports_the_use_of_the_quota(rt, used, level):
    rt.db.write(lambda tx: tx.execute_sql("UPDATE stored_media SET size_bytes = ?", (used,)))
    (found,) = storage.check_quota(rt)
    assert (found.level, found.subject) == (level, "media")
    assert "storage.quota" in found.message
    assert storage.read_use(rt).used_up == used / QUOTA
