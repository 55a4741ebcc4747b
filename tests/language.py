"""The language rules of the project: words to avoid, and how long a sentence may be.

`python -m tests.language [PATH ...]` lists what breaks a rule. `python -m tests.language --draw SEED` prints fifty
sentences at random, for a reader to judge.
"""

import ast
import io
import random
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
READ_BY_USERS = ("README.md", "config.example.toml", "socialpub")
READ_BY_DEVELOPERS = ("tests", "Makefile", ".ci/run", "pyproject.toml")

BETTER_WORDS = {
    r"\b(whoever|whatever|whichever)\b": "name the person or the thing",
    r"\b(nobody|no one)\b": "name who cannot, or write “cannot”",
    r"\banew\b|\bonce more\b": "again",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\b(told|tells?)\b(?! apart)": "report, return, print",
    r"\bstands? (in|here|there|for itself|beside|above|below)\b|\bwhat stands\b|\bas it stands\b": "is",
    r"\blies (in|here|there|beside|at|below)\b|\bas it lies\b": "is",
    r"\bso (many|much|long)\b": "give the number",
    r"\ball the same\b": "anyway",
    r"\bpatien(t|ce|tly)\b": "deadline, timeout",
    r"\bfilms?\b": "video",
    r"\bdoorbell\b": "wake-up",
    r"\b(now and then|from time to time)\b": "give the interval",
    r"\blet(s|ting)? go\b": "release",
    r", too\b": "also",
    r"(?<!how )\bany more\b": "no longer",
    r"\bthe house\b": "source layout",
    r"\bis to be (done|had|found|seen)\b": "name who does what",
    r"\bshall\b": "must, or the present tense",
}
"""Patterns, and what to write instead. Case does not matter."""
_ANY_WORD = re.compile("|".join(f"(?:{pattern})" for pattern in BETTER_WORDS), re.IGNORECASE)
"""One search instead of twenty, because most sentences contain none of the words."""

MAX_WORDS = 25
"""In one sentence that users read."""


class Text(NamedTuple):
    path: Path
    line: int
    seen_by_users: bool
    text: str


def python_texts(path: Path) -> Iterator[Text]:
    """String literals, docstrings, comments and the names of tests."""
    source = path.read_text()
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings, help_texts, fragments = set[int](), set[int](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, documented):
            # A command's docstring is its --help.
            is_command = any("command" in ast.dump(one) for one in getattr(node, "decorator_list", []))
            strings = [
                one.value for one in node.body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
            ]
            (help_texts if is_command else docstrings).update(map(id, strings))
        if isinstance(node, ast.JoinedStr):
            fragments |= {id(one) for one in node.values}
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "7" for one in node.values)
            yield Text(path, node.lineno, "\n" not in text, text)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Text(path, node.lineno, False, node.name.replace("_", " "))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in fragments:
            is_code = "\n" in node.value and id(node) not in docstrings and id(node) not in help_texts
            yield Text(path, node.lineno, id(node) not in docstrings and not is_code, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if "#" in source else ():
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], False, token.string)


def markdown_texts(path: Path) -> Iterator[Text]:
    text = re.sub(r"^ *```.*?^ *```$", lambda block: "\n" * block[0].count("\n"), path.read_text(), flags=re.M | re.S)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?= *(?:[-*|#]|\d+\.) ))", text):
        for cell in block.split("|"):
            yield Text(path, line, True, cell)
        line += block.count("\n")


def page_texts(path: Path) -> Iterator[Text]:
    """What a template shows. Elements inside a sentence do not part it."""
    text = re.sub(r"\{#.*?#\}|<(script|style).*?</\1>", "", path.read_text(), flags=re.S)
    text = re.sub(r"\{%.*?%\}", "\n\n", text, flags=re.S)
    text = re.sub(r"\{\{.*?\}\}", "7", text, flags=re.S)
    text = re.sub(r"</?(a|b|i|em|strong|code|span|time|abbr|kbd|small)\b[^>]*>", "", text)
    for block in re.split(r"<[^>]*>|\n\s*\n", text):
        yield Text(path, 1, True, block)


def toml_texts(path: Path) -> Iterator[Text]:
    """The comments, paragraph by paragraph."""
    text = path.read_text()
    for paragraph in re.finditer(r"(?:^#.*\n)+", text, re.M):
        line = text.count("\n", 0, paragraph.start()) + 1
        yield Text(path, line, True, re.sub(r"^#", "", paragraph[0], flags=re.M))


def comment_texts(path: Path) -> Iterator[Text]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("#"):
            yield Text(path, number, False, line)


READERS = {".py": python_texts, ".md": markdown_texts, ".html": page_texts, ".toml": toml_texts, "": comment_texts}
FOREIGN = frozenset({"vendored", "__pycache__", "node_modules", "migrations", "upgrades"})
"""Folders with files of others, and with texts that former versions have stored."""
OWN_FILES = {Path(__file__), Path(__file__).with_name("test_language.py")}
"""They contain the forbidden words."""
QUOTING = ("sandbox", "tests")
"""Folders whose strings quote the networks: their length is not checked."""


def texts(paths: list[Path]) -> Iterator[Text]:
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix in READERS and not set(file.parts) & FOREIGN and file not in OWN_FILES:
                yield from READERS[file.suffix](file)


def sentences(text: str) -> list[str]:
    """Without code, addresses and layout."""
    text = re.sub(r"`[^`]*`|https?://\S+", "X", text)
    text = re.sub(r"\s+", " ", text).strip(" #*")
    return re.split(r"(?<=[.!?:])[\"”)]? (?=[A-Z“\"(`\d*])", text)


def findings(paths: Iterable[str]) -> Iterator[str]:
    """Describe every word and every sentence that breaks a rule, with its place."""
    for path, line, seen_by_users, text in texts([ROOT / path for path in paths]):
        place = path.relative_to(ROOT)
        is_checked_for_length = seen_by_users and not set(place.parts) & set(QUOTING)
        for sentence in sentences(text):
            words = len(sentence.split())
            for pattern, better in BETTER_WORDS.items() if words > 1 and _ANY_WORD.search(sentence) else ():
                if found := re.search(pattern, sentence, re.IGNORECASE):
                    yield f"{place}:{line}: “{found[0]}”: write “{better}” in: {sentence[:200]}"
            if is_checked_for_length and words > MAX_WORDS and re.search(r"[.,;:!?]", sentence):
                yield f"{place}:{line}: {words} words, at most {MAX_WORDS}: {sentence[:200]}"


def draw(seed: int, count: int = 50) -> list[str]:
    """Return sentences that users or developers read, at random."""
    known = {
        sentence
        for _, _, _, text in texts([ROOT / one for one in READ_BY_USERS])
        for sentence in sentences(text)
        if len(sentence.split()) >= 6
        and sentence.endswith((".", "!", "?"))
        and not re.search(r"\b[A-Z]{4,} ", sentence)
    }
    return random.Random(seed).sample(sorted(known), count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--draw"]:
        print(*draw(int(sys.argv[2])), sep="\n")
    else:
        print(*findings(sys.argv[1:] or (*READ_BY_USERS, *READ_BY_DEVELOPERS)), sep="\n")
