"""The plot of the ratios against the number of posts, as SVG, readable on light and dark pages."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from tests.bench.figures import Figure, number

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 880, 420, 60, 380, 50, 50
STYLE = """
text { font-family: system-ui, sans-serif; font-size: 13px; fill: #1f2328 }
.page { fill: #ffffff } .grid { stroke: #d0d7de }
polyline, .target { fill: none; stroke-width: 2 } .target { stroke-dasharray: 3 5 }
.c0 { stroke: #0969da } .c1 { stroke: #1a7f37 } .c2 { stroke: #bc4c00 } .c3 { stroke: #8250df }
circle.c0 { fill: #0969da } circle.c1 { fill: #1a7f37 } circle.c2 { fill: #bc4c00 } circle.c3 { fill: #8250df }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #3d444d }
  .c0 { stroke: #58a6ff } .c1 { stroke: #3fb950 } .c2 { stroke: #f0883e } .c3 { stroke: #bc8cff }
  circle.c0 { fill: #58a6ff } circle.c1 { fill: #3fb950 } circle.c2 { fill: #f0883e } circle.c3 { fill: #bc8cff }
}
"""


def draw(figures: Sequence[Figure]) -> str:
    """Return the SVG. Each series is one line, and its target is a dashed line."""
    series: dict[str, list[Figure]] = {}
    for one in figures:
        if one.series and one.ratio is not None:
            series.setdefault(one.series, []).append(one)
    sizes = sorted({one.posts for some in series.values() for one in some if one.posts})
    highest = max((one.ratio or 0 for some in series.values() for one in some), default=1) * 1.15
    top = max(0.2, math.ceil(highest * 10) / 10)

    def x(posts: int) -> float:
        if len(sizes) < 2:
            return (LEFT + WIDTH - RIGHT) / 2
        low, high = math.log10(sizes[0]), math.log10(sizes[-1])
        return LEFT + 15 + (math.log10(posts) - low) / (high - low) * (WIDTH - RIGHT - LEFT - 30)

    def y(ratio: float) -> float:
        return HEIGHT - BOTTOM - ratio / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>Figures divided by their floor</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="{LEFT}" y="25">Figures divided by their floor of the same run. Dashed: the target.</text>',
    ]
    for step in range(round(top * 10) + 1):
        at = y(step / 10)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{step / 10:.1f}</text>')
    parts += [f'<text x="{x(one):.1f}" y="{HEIGHT - 28}" text-anchor="middle">{one:,}</text>' for one in sizes]
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">posts</text>')
    for at, (name, some) in enumerate(series.items()):
        parts += _line(name, some, at, x_of={posts: x(posts) for posts in sizes}, y_of=y)
    return "\n".join([*parts, "</svg>\n"])


def _line(name: str, some: Sequence[Figure], at: int, x_of: Mapping[int, float], y_of: object) -> list[str]:
    assert callable(y_of)
    points = [(x_of[one.posts], y_of(one.ratio)) for one in some if one.posts]
    target = next((one.least for one in some if one.least is not None), None)
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    label = f"{name}: {number(some[-1].ratio)}" + (f" (target {target:g})" if target is not None else "")
    height = TOP + 12 + 24 * at
    parts = [f'<polyline class="c{at % 4}" points="{drawn}"/>']
    parts += [f'<circle class="c{at % 4}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points]
    if target is not None:
        level = y_of(target)
        place = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"'
        parts.append(f'<line class="target c{at % 4}" {place}/>')
    begin = WIDTH - RIGHT + 15
    parts.append(f'<circle class="c{at % 4}" cx="{begin}" cy="{height - 4}" r="5"/>')
    parts.append(f'<text x="{begin + 12}" y="{height}">{escape(label)}</text>')
    return parts
