"""The benchmark as a chart: one bar per contestant at ten hooks, on a logarithmic scale."""

from __future__ import annotations

import math
from html import escape

from .timing import Timing

BAR, GAP, LEFT, WIDTH = 20, 8, 260, 820


def svg(rows: dict[str, dict[int, Timing]], sizes: tuple[int, ...], at: int = 10) -> str:
    """An SVG document. Our own rows stand out; the figure behind each bar is its time."""
    shown = sorted(((name, row[at].best) for name, row in rows.items() if at in row), key=lambda pair: pair[1])
    low, high = math.log10(shown[0][1]) - 0.3, math.log10(shown[-1][1])
    height = 50 + len(shown) * (BAR + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="24" font-size="16">One dispatch to {at} hooks (log scale, shorter is faster)</text>',
    ]
    for i, (name, ns) in enumerate(shown):
        y = 44 + i * (BAR + GAP)
        width = (math.log10(ns) - low) / (high - low) * (WIDTH - LEFT - 110)
        colour = "#1d6f5c" if name.startswith("fairlead") else "#c9c2b2" if name.startswith("plain") else "#8a9bb0"
        out += [
            f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colour}"/>',
            f'<text x="{LEFT + width + 6:.1f}" y="{y + 15}">{ns / 1000:,.2f} µs</text>',
        ]
    return "\n".join([*out, "</svg>", ""])
