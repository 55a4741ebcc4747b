"""The table: what was measured, the yardstick beside it, their ratio, and whether that is what we aim for."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line. `ratio` is a number of `unit`. Without an aim, the line only reports."""

    line: str
    figure: str
    yardstick: str = ""
    ratio: float | None = None
    aim: str = ""
    met: bool | None = None
    unit: str = ""


def at_least(line: str, figure: str, yardstick: str, ratio: float, aim: float | None) -> Figure:
    """A line that should reach `aim`; without one it reports."""
    if aim is None:
        return Figure(line, figure, yardstick, ratio)
    return Figure(line, figure, yardstick, ratio, f"≥ {aim:g}", ratio >= aim)


def at_most(line: str, figure: str, yardstick: str, value: float, aim: float | None, unit: str = "") -> Figure:
    """A line that should stay below `aim`; without one it reports."""
    if aim is None:
        return Figure(line, figure, yardstick, value, unit=unit)
    return Figure(line, figure, yardstick, value, f"≤ {aim:g}{unit}", value <= aim, unit)


def take_turns(rounds: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Run the measures A B A B …: what disturbs the machine disturbs all of them. The values of each measure."""
    values: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for found, measure in zip(values, measures, strict=True):
            found.append(measure())
    return values


def ratio(values: Sequence[float], yardsticks: Sequence[float]) -> float:
    """The median of the ratios of neighbours."""
    return statistics.median(value / yardstick for value, yardstick in zip(values, yardsticks, strict=True))


def per_second(values: Sequence[float]) -> str:
    return f"{statistics.median(values):,.0f}/s"


def share(values: Sequence[float], part: float) -> float:
    """The value that this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


HEAD = ("line", "figure", "yardstick", "ratio", "aim", "met")


def table(figures: Sequence[Figure]) -> str:
    rows: list[tuple[str, ...]] = [HEAD]
    for one in figures:
        number = "" if one.ratio is None else f"{one.ratio:.2f}{one.unit}"
        met = "" if one.met is None else "yes" if one.met else "NO"
        rows.append((one.line, one.figure, one.yardstick, number, one.aim, met))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    rows.insert(1, tuple("─" * width for width in widths))
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
