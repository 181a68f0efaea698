"""Write docs/images/architecture.svg: the path of a frame through the stages.

python docs/architecture_diagram.py
"""

from html import escape
from pathlib import Path

TARGET = Path(__file__).parent / "images" / "architecture.svg"
# Rows of (package, stage, what it hands on); the arrows go along a row and then to the next row.
ROWS = [
    [
        ("pose/video", "decode", "Frame"),
        ("pose_detectors", "detect people", "Boxes"),
        ("pose/tracking", "track", "Regions"),
        ("pose/networks/estimators", "find keypoints", "People"),
    ],
    [
        ("pose/lifting/repair", "undo swaps", "People"),
        ("pose/lifting", "lift to 3D", "Poses3D"),
        ("pose/world", "place in the world", "Placed"),
        ("pose/results, export, view, live", "write and show", ""),
    ],
]
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 62, 70, 60, 20


def box(column: int, row: int, package: str, stage: str) -> str:
    x, y = MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{x + WIDTH / 2:g}" y="{y + 27}" class="stage">{escape(stage)}</text>'
        f'<text x="{x + WIDTH / 2:g}" y="{y + 48}" class="package">{escape(package)}</text>'
    )


def arrow(column: int, row: int, label: str, *, last: bool) -> str:
    x, y = MARGIN + column * (WIDTH + GAP_X) + WIDTH, MARGIN + row * (HEIGHT + GAP_Y) + HEIGHT / 2
    if last:  # down to the first box of the next row
        start, middle, end = x - WIDTH / 2, y + HEIGHT / 2 + GAP_Y / 2, MARGIN + WIDTH / 2
        path = f"M{start:g} {y + HEIGHT / 2:g}V{middle:g}H{end:g}v{GAP_Y / 2 - 3:g}"
        at = ((start + end) / 2, middle - 6)
    else:
        path, at = f"M{x:g} {y:g}h{GAP_X - 3}", (x + GAP_X / 2, y - 8)
    return f'<path d="{path}" marker-end="url(#tip)"/><text x="{at[0]:g}" y="{at[1]:g}" class="data">{label}</text>'


def diagram() -> str:
    """The SVG document."""
    parts = []
    for row, stages in enumerate(ROWS):
        for column, (package, stage, data) in enumerate(stages):
            parts.append(box(column, row, package, stage))
            if data:
                parts.append(arrow(column, row, data, last=column == len(stages) - 1))
    width = 2 * MARGIN + 4 * WIDTH + 3 * GAP_X
    height = 2 * MARGIN + len(ROWS) * HEIGHT + (len(ROWS) - 1) * GAP_Y
    style = (
        "rect{fill:#e8f1fa;stroke:#0072b2}text{font-family:sans-serif;text-anchor:middle;fill:#222}"
        ".stage{font-size:16px}.package,.data{font-size:12px}.data{fill:#b35900}"
        "path{fill:none;stroke:#555;stroke-width:1.5}#tip path{fill:#555;stroke:none}"
    )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        "<title>The path of a frame through the stages</title>"
        f'<style>{style}</style><defs>{tip}<path d="M0 0L8 4L0 8z"/></marker></defs>'
        f'<rect width="{width}" height="{height}" style="fill:#fff;stroke:none"/>' + "".join(parts) + "</svg>\n"
    )


if __name__ == "__main__":
    TARGET.write_text(diagram(), encoding="utf-8")
