"""The README as its readers use it: the lines of its fenced blocks, by section and language."""

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(section: str, language: str) -> list[str]:
    """What stands in the fenced blocks of this language below this heading, in order, without their indentation."""
    _, found, rest = README.partition(f"\n{section}\n")
    assert found, f"the README has no {section!r}"
    level = section.partition(" ")[0]
    text, inside = "", False
    for line in rest.splitlines(keepends=True):
        inside ^= line.lstrip().startswith("```")
        if not inside and re.match(rf"#{{1,{len(level)}}} ", line):
            break  # the next section; inside a block such a line is a comment
        text += line
    fenced = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(lines) for _, lines in fenced]
