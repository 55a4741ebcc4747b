"""The README's tables of every option that a post can have, made from the tables that read them.

    python -m tests.options_table

writes them anew (`make options-table`); `tests/test_docs.py` finds out when somebody should have.
"""

import json
from pathlib import Path

from socialpub.providers.options import Option, OptionType
from socialpub.providers.registry import LABELS, OPTIONS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- options: written by `make options-table` -->\n\n", "\n<!-- end of options -->\n"


def tables() -> str:
    """One table per network, in Markdown."""
    return "\n".join(_table(LABELS[network], options) for network, options in OPTIONS.items())


def split(readme: str) -> tuple[str, str, str]:
    """What comes before the tables, the tables, what comes after."""
    before, _, rest = readme.partition(BEGIN)
    present, _, after = rest.partition(END)
    return before + BEGIN, present, END + after


def _table(label: str, options: tuple[Option, ...]) -> str:
    rows = [f"| `{one.name}` | {_value(one)} | {_default(one)} | {_cell(one.meaning)} |" for one in options]
    return "\n".join([f"| {label} | Value | Default | What it says |", "|---|---|---|---|", *rows]) + "\n"


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
        case OptionType.COLOUR:
            return "colour"
        case OptionType.CHOICE:
            return "one of those named"
        case OptionType.CHOICES:
            return "list of those named"
        case OptionType.ARTIFACT:
            return "id of an artifact"


def _default(option: Option) -> str:
    return "" if option.default is None else f"`{json.dumps(option.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    before, _, after = split(README.read_text())
    README.write_text(before + tables() + after)
