"""Copies as stories need them: made of one appliance, restored as another, or put together by somebody else."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, backup_format
from socialpub.db.tables import artifact_rows
from socialpub.ops.backup import create, restore
from socialpub.ops.notify import notifier
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime, build
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import FaultTransport, artifact, http_over, providers_of_the_sandbox


def copy_of(rt: Runtime, folder: Path, *, with_secret: bool = True) -> Path:
    """A copy of this appliance; its file. The folder may be missing."""
    folder.mkdir(exist_ok=True)
    target = folder / "appliance.copy"
    create.write_backup(rt, target, with_secret=with_secret)
    return target


def post_with_an_image(rt: Runtime, folder: Path) -> str:
    """What there is to copy: a profile, its post, and the post's picture, made in this folder; the artifact's id."""
    artifact_id = artifact(rt, media.png(folder / "a.png"), "image/png")
    accept(rt, add_profile(rt), media=(DraftMedia(artifact_id),))
    return artifact_id


def file_of(rt: Runtime, artifact_id: str) -> Path:
    """Where the bytes of an artifact are stored."""
    row = artifact_rows.find(rt.db, artifact_id)
    assert row is not None
    return rt.files.path(row.storage_key)


def put_back(copy: Path, folder: Path, clock: HandClock) -> Settings:
    """The copy as another appliance in this folder, which may be missing; its settings."""
    settings = Settings(data_dir=folder / "data")
    restore.restore(copy, settings, clock)
    return settings


def forged(
    copy: Path,
    target: Path,
    *extra: tarfile.TarInfo,
    without: str = "",
    changed: dict[str, bytes],
    key: Secrets | None = None,
) -> Path:
    """The same copy with members of somebody else's, and sums that are right; signed with `key`, if there is one."""
    contents = [(name, changed.get(name, content)) for name, content in contents_of(copy) if name != without]
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in contents:
            add(tar, name, content)
        for member in extra:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
        contents += [(member.name, b"x" * member.size) for member in extra if member.isreg()]
        sums = b"".join(
            backup_format.sums_line(hashlib.sha256(content).hexdigest(), name) for name, content in contents
        )
        add(tar, backup_format.SUMS, sums)
        if key is not None:
            add(tar, backup_format.SEAL, key.sign_backup(hashlib.sha256(sums).hexdigest()).encode() + b"\n")
    return target


def rewritten(copy: Path, target: Path, sums: bytes) -> Path:
    """The same copy with other sums."""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in [*contents_of(copy), (backup_format.SUMS, sums)]:
            add(tar, name, content)
    return target


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.size = 0o600, len(content)
    tar.addfile(info, io.BytesIO(content))


def contents_of(copy: Path) -> list[tuple[str, bytes]]:
    """Name and content of every member but the sums and the signature."""
    with tarfile.open(copy) as tar:
        names = [name for name in tar.getnames() if name not in (backup_format.SUMS, backup_format.SEAL)]
        return [(name, read(tar, name)) for name in names]


def read(tar: tarfile.TarFile, name: str) -> bytes:
    content = tar.extractfile(name)
    assert content is not None
    return content.read()


def members_of(copy: Path) -> list[str]:
    return [name for name, _ in contents_of(copy)]


def sums_of(copy: Path) -> bytes:
    with tarfile.open(copy) as tar:
        return read(tar, backup_format.SUMS)


@contextmanager
def restored(copy: Path, world: World, clock: HandClock, *, bluesky: bool = False) -> Iterator[Runtime]:
    """The copy as another appliance with the same networks."""
    http = http_over(FaultTransport(world))
    settings = Settings(data_dir=copy.parent / "elsewhere", providers=providers_of_the_sandbox(bluesky=bluesky))
    restore.restore(copy, settings, clock)
    rt = build(settings, clock=clock, http=http, role="test")
    try:
        yield rt
    finally:
        rt.close()


def resumed(rt: Runtime, clock: HandClock, **how: bool) -> resume.Resumed:
    """Resumed, and everything done until it is quiet."""
    outcome = rt.write(resume.resume, **how)
    drain(rt, clock)
    return outcome


def become_restored(rt: Runtime) -> None:
    """As after `restore`, without a copy: this very appliance is one, made now, and paused."""
    rt.db.write(lambda tx: appliance_state.note_restore(tx, tx.stamp))
    rt.db.write(notifier.forget_original)
    rt.write(resume.pause)
