"""The lines of the fenced blocks in the README and in the manual, as readers type them."""

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
MANUAL = ROOT / "socialpub" / "manual"


def topic(name: str) -> Path:
    return MANUAL / f"{name}.md"


def blocks(page: Path, section: str, language: str) -> list[str]:
    """Return the fenced blocks of this language below this heading, in order, without their indentation."""
    _, found, rest = page.read_text().partition(f"\n{section}\n")
    assert found, f"{page.name} has no {section!r}"
    level = section.partition(" ")[0]
    text, inside = "", False
    for line in rest.splitlines(keepends=True):
        inside ^= line.lstrip().startswith("```")
        if not inside and re.match(rf"#{{1,{len(level)}}} ", line):
            break  # the next section; inside a block such a line is a comment
        text += line
    fenced = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(lines) for _, lines in fenced]
