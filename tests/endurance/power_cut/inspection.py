"""What the disk has after a cut, compared with what had been answered before it."""

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.endurance.power_cut.image_disk import ImageDisk


@dataclass(frozen=True)
class BeforeTheCut:
    """`posts` had their 201; `artifacts` were answered as verified, each with its hash."""

    posts: frozenset[str]
    artifacts: dict[str, str]
    key: bytes


def inspect(image: Path, folder: Path, before: BeforeTheCut) -> list[str]:
    """Mount the copy, open it as socialpub would, and say what is missing."""
    disk = ImageDisk(image, folder)
    try:
        return _missing(folder, before)
    finally:
        disk.unmount()


def _missing(data: Path, before: BeforeTheCut) -> list[str]:
    found = []
    if (data / "secret.key").read_bytes() != before.key:
        found.append("secret.key is not what it was")
    with closing(sqlite3.connect(data / "socialpub.db")) as database:
        checked = database.execute("PRAGMA integrity_check").fetchall()
        posts = {row[0] for row in database.execute("SELECT id FROM post")}
        rows = database.execute("SELECT id, status, storage_key FROM artifact").fetchall()
    if checked != [("ok",)]:
        found.append(f"damaged: {checked[:3]}")
    lost = before.posts - posts
    if lost:
        found.append(f"{len(lost)} of {len(before.posts)} acknowledged posts are lost: {sorted(lost)[:3]}")
    artifacts = {row[0]: row for row in rows}
    for artifact_id, sha256 in before.artifacts.items():
        row = artifacts.get(artifact_id)
        if row is None or row[1] != "verified":
            found.append(f"the artifact {artifact_id} was verified, and is {row and row[1]}")
        elif _sha256(data / "media" / row[2]) != sha256:
            found.append(f"the artifact {artifact_id} has other bytes")
    for _, status, key in rows:
        if status == "verified" and key and not (data / "media" / key).is_file():
            found.append(f"{key} has a row that is verified, and no file")
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"


def key_of(data: Path) -> bytes:
    return (data / "secret.key").read_bytes()
