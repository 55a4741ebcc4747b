"""One row of the table: a figure, its floor, their ratio, the target, and whether the target is met."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """`floor` is what the same work costs at least, measured in the same run. A figure without a target only reports.

    The target is `least` or `most`. It applies to the ratio of a figure with a floor, unless `of_value` is set.
    """

    name: str
    value: float | None
    unit: str
    floor: float | None = None
    floor_name: str = ""
    ratio: float | None = None
    least: float | None = None
    most: float | None = None
    of_value: bool = False
    series: str = ""
    """The line of the plot that this figure belongs to."""
    posts: int | None = None
    before: float | None = None
    """The value of the other checkout."""
    before_ratio: float | None = None
    note: str = ""
    """Why there is no value."""

    @property
    def met(self) -> bool | None:
        compared = self.value if self.of_value or self.ratio is None else self.ratio
        if compared is None or (self.least is None and self.most is None):
            return None
        return (self.least is None or compared >= self.least) and (self.most is None or compared <= self.most)

    @property
    def target(self) -> str:
        unit = self.unit if self.of_value or self.ratio is None else ""
        bound = f"≥ {self.least:g}" if self.least is not None else f"≤ {self.most:g}" if self.most is not None else ""
        return f"{bound}{_space(unit)}" if bound else ""


def compare(
    name: str, values: Sequence[float], floors: Sequence[float], unit: str, floor_name: str, **more: Any
) -> Figure:
    """Return a figure with the medians, and the median of the ratios of neighbors."""
    ratio = statistics.median(value / floor for value, floor in zip(values, floors, strict=True))
    return Figure(name, statistics.median(values), unit, statistics.median(floors), floor_name, ratio, **more)


def grown(name: str, many: Figure, few: Figure, most: float) -> Figure:
    """Return how many times worse a figure is with many posts. A rate is worse when it is smaller."""
    assert many.value and few.value
    rate = many.unit.endswith("/s")
    ratio = few.value / many.value if rate else many.value / few.value
    floor_name = f"with {few.posts:,} posts"
    return Figure(name, many.value, many.unit, few.value, floor_name, ratio, most=most)


def share(values: Sequence[float], part: float) -> float:
    """Return the value that this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def beside(now: Sequence[Figure], before: Sequence[Figure]) -> list[Figure]:
    """Return the figures with the values of the other checkout."""
    known = {one.name: one for one in before}
    return [
        replace(one, before=known[one.name].value, before_ratio=known[one.name].ratio) if one.name in known else one
        for one in now
    ]


def as_dict(figure: Figure) -> dict[str, Any]:
    return {**asdict(figure), "met": figure.met, "target": figure.target}


def from_dict(shown: dict[str, Any]) -> Figure:
    return Figure(**{name: value for name, value in shown.items() if name not in ("met", "target")})


# --- the table -------------------------------------------------------------------------------------------------------


def rows(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """Return the table with its head. The values of another checkout are a column of their own."""
    compared = any(one.before is not None for one in figures)
    head = ("figure", *(("before",) if compared else ()), "value", "floor", "ratio", "target", "met")
    found = [head]
    for one in figures:
        floor = "" if one.floor is None else f"{number(one.floor)}{_space(one.unit)} {one.floor_name}"
        met = "" if one.met is None else "yes" if one.met else "NO"
        value = one.note if one.value is None else f"{number(one.value)}{_space(one.unit)}"
        before = () if not compared else (_before(one),)
        found.append((one.name, *before, value, floor, number(one.ratio), one.target, met))
    return found


def table(figures: Sequence[Figure]) -> str:
    shown = rows(figures)
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    shown.insert(1, tuple("─" * width for width in widths))
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown)
    return "\n".join(line.rstrip() for line in lines)


def markdown(figures: Sequence[Figure]) -> str:
    head, *others = rows(figures)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ("---",) * len(head), *others))


def number(value: float | None) -> str:
    """Return three digits, and thousands with commas."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _before(one: Figure) -> str:
    if one.before is None:
        return ""
    ratio = "" if one.before_ratio is None else f" ({number(one.before_ratio)})"
    return f"{number(one.before)}{_space(one.unit)}{ratio}"


def _space(unit: str) -> str:
    return unit if unit.startswith("/") or not unit else f" {unit}"
