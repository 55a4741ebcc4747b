"""Writes the table of a run into the manual's page Speed (`python -m tests.bench --write-page`)."""

import re
from typing import Any

from tests.bench import figures
from tests.support.readme import MANUAL

PAGE = MANUAL / "speed.md"
MARKS = re.compile(r"(<!-- figures -->\n).*?(<!-- end of figures -->\n)", re.DOTALL)


def write_page(result: dict[str, Any]) -> None:
    """Put the figures between the marks."""
    PAGE.write_text(render(PAGE.read_text(), result))


def render(page: str, result: dict[str, Any]) -> str:
    """Return the page with the table of this run (the content of `bench.json`)."""
    shown = figures.markdown([figures.from_dict(one) for one in result["figures"]])
    run = f"{result['cores']} cores, Python {result['python']}, {result['platform']}"
    return MARKS.sub(lambda found: f"{found[1]}\nVersion {result['version']}, {run}:\n\n{shown}\n{found[2]}", page)
