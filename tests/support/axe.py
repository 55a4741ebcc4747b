"""axe-core asked about a page: what people who hear it, or use it by keyboard, would stumble over."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

SCRIPT = Path(__file__).parents[2] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


def violations(page: Page) -> list[str]:
    """Each violation with the elements that it is about. The test is skipped where `make test` found no npm."""
    if not SCRIPT.exists():
        pytest.skip("no axe-core: install npm (Debian: nodejs npm) and run make dev")
    page.evaluate(SCRIPT.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document)")
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {node['html'][:200]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]
