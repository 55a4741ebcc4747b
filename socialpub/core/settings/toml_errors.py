"""What is wrong with a file that is no TOML: where it stands, and what to do about it."""

import re
import tomllib

_AT = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)$")
_TWICE = re.compile(r"Cannot (?:declare|mutate immutable namespace) (\(.*\))(?: twice)?")


def explain(text: str, error: tomllib.TOMLDecodeError) -> tuple[str, str]:
    """The mistake as the rest of a sentence about the file, and the remedy. Values are never part of it."""
    what = str(error)
    found = _AT.search(what)
    what = what[: found.start()] if found else what
    line = int(found[1]) if found and found[1] else len(text.splitlines())
    if section := _section_twice(what):
        head = f"[{section}]"
        first = next((number for number, one in enumerate(text.splitlines(), 1) if _head(one) == head), None)
        before = f", first in line {first}" if first is not None and first != line else ""
        return (
            f"has the section {head} twice: in line {line}{before}",
            f"Put all keys of {head} below one of them, and remove the other.",
        )
    if what == "Cannot overwrite a value":
        key = text.splitlines()[line - 1].partition("=")[0].strip()
        return f"sets {key} twice: again in line {line}", "Keep one of the two lines, and remove the other."
    return f"is not valid TOML in line {line}: {what}", 'Text values stand in quotes: key = "value".'


def _section_twice(what: str) -> str | None:
    match = _TWICE.fullmatch(what)
    return ".".join(re.findall(r"'([^']*)'", match[1])) if match else None


def _head(line: str) -> str:
    """A section's line as it is usually written."""
    return re.sub(r"\s+", "", line.partition("#")[0])
