"""Stories with real processes begin as those of `tests/e2e` do."""

from tests.e2e.conftest import make_installation, make_small_disk, prepared

__all__ = ["make_installation", "make_small_disk", "prepared"]
