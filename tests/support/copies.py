"""Copies as stories need them: taken from one appliance, put back as another, or put together by somebody else."""

import io
import tarfile
from pathlib import Path

from socialpub.core.settings.loader import Settings
from socialpub.ops import archive, backup, restore
from socialpub.ops.archive import Archive
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock


def copy_of(rt: Runtime, folder: Path, *, with_secret: bool = True) -> Path:
    """A copy of this appliance; its file."""
    target = folder / "appliance.copy"
    backup.write(rt, target, with_secret=with_secret)
    return target


def put_back(copy: Path, folder: Path, clock: HandClock) -> Settings:
    """The copy as another appliance in this folder, which may be missing; its settings."""
    settings = Settings(data_dir=folder / "data")
    restore.restore(copy, settings, clock)
    return settings


def forged(copy: Path, target: Path, *extra: tarfile.TarInfo, without: str = "", changed: dict[str, bytes]) -> Path:
    """The same copy with members of somebody else's, and sealed as ours are."""
    with tarfile.open(copy) as original, target.open("wb") as file:
        made = Archive(file)
        for member in original:
            content = original.extractfile(member)
            assert content is not None
            if member.name != without and not member.name.startswith("sha256/"):
                made.add(member.name, changed.get(member.name, content.read()))
        for member in extra:
            made._tar.addfile(member, io.BytesIO(b"x" * member.size))
        made.seal()
    return target


def members_of(copy: Path) -> list[str]:
    with copy.open("rb") as file:
        return [name for name, _ in archive.members(copy, file)]
