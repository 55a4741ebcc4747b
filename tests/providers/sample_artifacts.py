"""Samples that many cells share: made once and examined once."""

from collections.abc import Callable
from pathlib import Path

from socialpub.media.inspect import Facts, Limits, examine
from socialpub.runtime import Runtime
from tests.support.sandbox_http import artifact

_known: dict[Path, Facts] = {}


def sample_artifact(rt: Runtime, sample: Path, mime_type: str, make: Callable[[Path], object]) -> str:
    """An artifact of this sample in this appliance; its id."""
    if sample not in _known:
        make(sample)
        _known[sample] = examine(sample, mime_type, Limits())
    return artifact(rt, sample, mime_type, _known[sample])
