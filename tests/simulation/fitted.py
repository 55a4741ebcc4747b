"""Pictures that were made to fit once: the same samples are sent in every episode, and each fitting takes a process."""

import hashlib
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

from socialpub.media.decoder import client
from socialpub.media.types import FitLimits


class FittedOnce:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fit = client.fit
        self._known: dict[tuple[str, FitLimits], tuple[Path, dict[str, Any]]] = {}

    def __call__(self, source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
        """As `decoder_client.fit`. Files of one sample are links to it, or were restored."""
        key = hashlib.sha256(source.read_bytes()).hexdigest(), limits
        if key not in self._known:
            kept = self._folder / f"fitted-{len(self._known)}"
            self._known[key] = kept, self._fit(source, kept, limits)
        kept, verdict = self._known[key]
        if verdict["changed"]:
            shutil.copyfile(kept, target)
        return dict(verdict)

    def in_use(self) -> Any:
        return mock.patch.object(client, "fit", self)
