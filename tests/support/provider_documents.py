"""Where the providers' own documents lie: beside the checkout, never inside it."""

import os
from pathlib import Path

import pytest

BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[3] / "shared" / "providers"


def document(*parts: str) -> Path:
    """The path of one document; skips the test, saying so, where it is missing."""
    folder = Path(os.environ.get("PROVIDER_SPECS") or BESIDE_THE_CHECKOUT)
    path = folder.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is missing: put the providers' documents into $PROVIDER_SPECS")
    return path
