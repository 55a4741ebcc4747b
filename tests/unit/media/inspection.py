"""Short functions that inspect a file."""

from pathlib import Path

import pytest

from socialpub.media.decoder.inspect import inspect_file
from socialpub.media.types import Facts, MediaLimits, MediaRejected


def inspected(path: Path, declared: str, limits: MediaLimits | None = None) -> Facts:
    return inspect_file(path, declared, limits or MediaLimits())


def rejection(path: Path, declared: str, limits: MediaLimits | None = None) -> str:
    with pytest.raises(MediaRejected) as caught:
        inspected(path, declared, limits)
    assert str(path.parent) not in caught.value.reason
    return caught.value.reason
