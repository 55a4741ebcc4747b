"""Every finding and every page of the dashboard that links to the manual leads to an anchor."""

import ast
import re
from pathlib import Path

import pytest

from socialpub.core import manual
from socialpub.core.settings.schema import AlertKind
from socialpub.ops.doctor.checks import SUBJECTS

SOURCE = Path(manual.__file__).parents[1]
TEMPLATES = SOURCE / "web" / "dashboard" / "templates"
LINK = re.compile(r'href\("/manual/([a-z#-]+)"\)|parts\.manual\("([a-z#-]+)"')


def linked_places() -> set[str]:
    found = [LINK.findall(page.read_text()) for page in TEMPLATES.glob("*.html")]
    return {first or second for of_page in found for first, second in of_page}


def subjects() -> set[str]:
    """Return the subjects of all notes and problems in the code, and of the alerts."""
    found = {SUBJECTS.get(kind, kind.value) for kind in AlertKind}
    for path in [*(SOURCE / "ops").rglob("*.py"), SOURCE / "cli" / "setup.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("note", "problem") and node.args:
                subject = node.args[0]
                if isinstance(subject, ast.Constant):
                    found.add(str(subject.value))
    return found


@pytest.mark.parametrize("place", sorted({*manual.finding_places().values(), *linked_places()}))
def test_a_place_is_a_topic_and_an_anchor_of_it(place: str) -> None:
    topic, _, anchor = place.partition("#")
    assert topic in manual.list_topics()
    headings = re.findall(r"^#+ (.+)$", manual.read_topic(topic), re.MULTILINE)
    assert not anchor or anchor in {manual.anchor(heading) for heading in headings}


def test_every_finding_has_a_place_in_the_manual() -> None:
    assert subjects() - manual.finding_places().keys() == set()


def test_several_pages_of_the_dashboard_link_to_the_manual() -> None:
    assert len(linked_places()) > 3
