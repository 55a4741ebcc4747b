"""The tables of the manual that come from the code (`make manual-tables`).

Each table is between `<!-- begin NAME -->` and `<!-- end NAME -->`. `tests/test_docs.py` reports stale tables.
"""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from socialpub.core.settings.loader import KEYS
from socialpub.db import states
from socialpub.db.states import PostStatus, ProfileStatus, State
from socialpub.providers.options import Option, OptionType
from socialpub.providers.registry import LABELS, OPTIONS
from socialpub.publishing.delivery.transitions import ROWS, PhaseEvent
from tests.support.readme import MANUAL, ROOT

MARKS = re.compile(r"(<!-- begin ([a-z-]+) -->\n).*?(<!-- end \2 -->\n)", re.DOTALL)
EXAMPLE = ROOT / "config.example.toml"
SAME_KEY = "providers.x"
"""The section whose comments also describe keys of the same name in the sections of other networks."""


def render(page: str) -> str:
    """Return the page with the present tables."""
    return MARKS.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", page)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# --- options ---------------------------------------------------------------------------------------------------------


def options() -> str:
    head = ("Value", "Default", "Meaning")
    return "\n".join(
        f"### {LABELS[network]} options\n\n"
        + _table(("Option", *head), [(f"`{one.name}`", _value(one), _default(one), one.meaning) for one in of_network])
        for network, of_network in OPTIONS.items()
    )


def _value(option: Option) -> str:
    most = option.maximum
    match option.type:
        case OptionType.BOOLEAN:
            return "`true` or `false`"
        case OptionType.INTEGER:
            return f"whole number, {option.minimum} to {most}" if most else f"whole number from {option.minimum}"
        case OptionType.TEXT:
            return f"text, at most {most} characters" if most else "text"
        case OptionType.DIGITS:
            return "id, digits in quotes"
        case OptionType.LINK:
            return "http or https address" + (f", at most {most} characters" if most else "")
        case OptionType.COLOR:
            return "color"
        case OptionType.CHOICE:
            return "one of the values"
        case OptionType.CHOICES:
            return "list of the values"
        case OptionType.LANGUAGES:
            return f"list of at most {most} language tags"
        case OptionType.ARTIFACT:
            return "id of an artifact"
        case OptionType.POST:
            return "id of a post"


def _default(option: Option) -> str:
    return "" if option.default is None else f"`{json.dumps(option.default)}`"


# --- states ----------------------------------------------------------------------------------------------------------


def _documented(kind: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """Yield each member's value with the text below it."""
    (definition,) = (
        node
        for node in ast.parse(inspect.getsource(states)).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    for member, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr):
            yield ast.literal_eval(member.value), " ".join(ast.literal_eval(text.value).split())


def post_states() -> str:
    return _table(("Post", "Meaning"), [(f"`{value}`", text) for value, text in _documented(PostStatus)])


def profile_states() -> str:
    return _table(("Profile", "Meaning"), [(f"`{value}`", text) for value, text in _documented(ProfileStatus)])


def delivery_states() -> str:
    rows = [(f"`{value}`", f"`{State(value).api_status}`", text) for value, text in _documented(State)]
    return _table(("State", "In the API", "Meaning"), rows)


# --- settings --------------------------------------------------------------------------------------------------------


def settings() -> str:
    """Return a table per section. The example shows the defaults, which `test_config_example.py` checks."""
    found: dict[str, list[tuple[str, ...]]] = {"": []}
    meanings: dict[str, str] = {}
    section, comment, above = "", "", ""
    for line in EXAMPLE.read_text().splitlines():
        if line.startswith("# "):
            comment = f"{comment} {line[2:]}".strip()
        elif match := re.fullmatch(r"\[([a-z_.]+)\]", line):
            section, comment, above = match[1], "", ""
            found[section] = []
        elif match := re.match(r"([a-z_]+) = (.*?)( +# .*)?$", line):
            name, default, beside = match[1], match[2], (match[3] or "").strip(" #")
            key = f"{section}.{name}".lstrip(".")
            shared = meanings.get(f"{SAME_KEY}.{name}") if section.startswith("providers.") else None
            meanings[key] = comment
            meaning = comment or shared or above
            above, comment = comment or above, ""
            note = f" ({beside})" if beside and not beside.startswith('"') else ""
            accepted = KEYS[tuple(key.split("."))].description or ""
            found[section].append((f"`{name}`", f"`{default}`", _prose(accepted), _prose(meaning + note)))
        else:
            comment = ""
    head = ("Key", "Default", "Accepted values", "Meaning")
    return "\n".join(
        f"### {f'`[{name}]`' if name else 'Without a section'}\n\n{_table(head, rows)}" for name, rows in found.items()
    )


def _prose(text: str) -> str:
    """Return the text with addresses that contain placeholders as code: Markdown takes `<network>` as HTML."""
    return re.sub(r"(?<![`\w/])(\{base_url\}/[^\s,;)]*[^\s,;).:])", r"`\1`", " ".join(text.split()))


# --- networks --------------------------------------------------------------------------------------------------------

PACKAGE = ROOT / "socialpub"
ADDED_LAST = "bluesky"
"""The network whose places are the example for the next network."""
LEAST_CHANGE = 0.1
"""A smaller change of a number of lines does not change the table, so that few commits touch it."""


def network_sizes() -> str:
    """Return a table with the files and lines of each network. The lines are rounded to hundreds."""
    present = {
        label: [int(number.replace(",", "")) for number in numbers.split(" | ")]
        for label, numbers in re.findall(
            r"^\| (\w+) \| ([0-9, |]+) \|$", (MANUAL / "development.md").read_text(), re.MULTILINE
        )
    }
    rows = []
    for name, label in LABELS.items():
        counted = [*_count(PACKAGE / "providers" / name), *_count(PACKAGE / "sandbox" / name)]
        shown = present.get(label, [])
        stays = len(shown) == len(counted) and all(
            abs(one - other) <= max(1, LEAST_CHANGE * other) for one, other in zip(shown, counted, strict=True)
        )
        rows.append((label, *(f"{number:,}" for number in (shown if stays else _rounded(counted)))))
    return _table(("Network", "Files in `providers/`", "Lines", "Files in `sandbox/`", "Lines"), rows)


def _count(folder: Path) -> tuple[int, int]:
    texts = [path.read_text() for path in folder.glob("*.py")]
    return len(texts), sum(text.count("\n") for text in texts)


def _rounded(counted: Sequence[int]) -> list[int]:
    return [number if number < 100 else round(number, -2) for number in counted]


def network_places() -> str:
    """Return a list of the files that name the newest network outside of its own folders and the manual."""
    own = re.compile(rf"(providers|sandbox)/{ADDED_LAST}/|_?{ADDED_LAST}[a-z_]*\.html$")
    texts = (path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".html", ".css", ".js", ".json", ".md"))
    places = (path for path in texts if "manual" not in path.parts and not own.search(path.as_posix()))
    named = sorted(path.relative_to(PACKAGE) for path in places if ADDED_LAST in path.read_text().lower())
    return "".join(f"- `{path.as_posix()}`\n" for path in named)


def phases() -> str:
    """Return the phases, and what leads from one to another. The states at the end have their own table."""
    meanings = [(f"`{name}`", (phase.__doc__ or "").strip()) for name, phase in states.PHASES.items()]
    rows = []
    for event in PhaseEvent:
        moves = [(before, after) for of_event, before, after in ROWS if of_event is event]
        written = [
            f"{', '.join(f'`{phase}`' for phase in before)} → `{after}`"
            for before, after in moves
            if isinstance(after, states.PhaseName) and before != (after,)
        ]
        if written:
            rows.append((event.value, "; ".join(written)))
    return f"{_table(('Phase', 'Meaning'), meanings)}\n{_table(('What happens', 'Before → after'), rows)}"


TABLES: dict[str, Callable[[], str]] = {
    "options": options,
    "profile-states": profile_states,
    "post-states": post_states,
    "delivery-states": delivery_states,
    "phases": phases,
    "settings": settings,
    "network-sizes": network_sizes,
    "network-places": network_places,
}

if __name__ == "__main__":
    for path in sorted(MANUAL.glob("*.md")):
        path.write_text(render(path.read_text()))
