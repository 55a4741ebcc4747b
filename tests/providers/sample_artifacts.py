"""Samples that many cells share, created and inspected once."""

from collections.abc import Callable
from pathlib import Path

from socialpub.media.decoder.inspect import inspect_file
from socialpub.media.types import Facts, MediaLimits
from socialpub.runtime import Runtime
from tests.support.sandbox_http import artifact

_known: dict[Path, Facts] = {}


def sample_artifact(rt: Runtime, sample: Path, mime_type: str, make: Callable[[Path], object]) -> str:
    if sample not in _known:
        make(sample)
        _known[sample] = inspect_file(sample, mime_type, MediaLimits())
    return artifact(rt, sample, mime_type, _known[sample])
