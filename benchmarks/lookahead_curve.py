"""How accuracy grows with the frames a stream may look ahead: a plot and the tables of docs/studies/lifter.md.

    python benchmarks/lookahead_curve.py --accuracy docs/studies/lifter-accuracy.json \
        --out docs/studies/images/lookahead.png

reads what `benchmarks/lifter_accuracy.py` wrote, draws the errors of the streaming lifter over its look-ahead with the
offline lifter as a line beside them, and prints the tables.
"""

import argparse
import json
from pathlib import Path
from typing import Any

Figures = dict[str, dict[str, dict[str, Any]]]  # model -> condition -> figure -> value

STREAM = "stream, look-ahead "
FPS = 30
CURVES = {"gt": "exact 2D", "detector": "detector-like 2D"}
ANGLES = """### Knees and elbows by true angle

By how many degrees a limb comes out more bent (+) or less (-) than it is, and in brackets the mean absolute error, by
how far it is truly bent (0 is straight). A mean over all angles hides that an uncertain depth bends straight limbs and
straightens bent ones."""
PANELS = {"mpjpe": "MPJPE, mm", "p_mpjpe": "P-MPJPE, mm", "acceleration": "acceleration error, mm/frame²"}


def lookaheads(figures: Figures) -> list[int]:
    return sorted(int(name.removeprefix(STREAM)) for name in figures if name.startswith(STREAM))


def plot(figures: Figures, path: Path) -> None:
    """One panel a figure; solid: the stream, dashed: the offline lifter."""
    from matplotlib.figure import Figure

    frames = lookaheads(figures)
    places = range(len(frames))
    drawing = Figure(figsize=(10, 3.2), layout="constrained")
    for axes, (key, label) in zip(drawing.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for number, (condition, name) in enumerate(CURVES.items()):
            values = [figures[f"{STREAM}{count}"][condition][key] for count in frames]
            axes.plot(places, values, "o-", color=f"C{number}", label=f"stream, {name}")
            axes.axhline(figures["offline"][condition][key], ls="--", color=f"C{number}", label=f"offline, {name}")
        axes.set_xticks(places, [f"{count}\n{1000 * count / FPS:.0f} ms" for count in frames])
        axes.set(title=label, xlabel="look-ahead, frames")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=80)


def table(figures: Figures, condition: str) -> str:
    """Markdown: every model under one condition."""
    lines = ["| model | MPJPE | P-MPJPE | acceleration | inside one sigma | root |", "|---|---|---|---|---|---|"]
    for name, rows in figures.items():
        f = rows[condition]
        inside = "-" if name == "mean pose" else f"{100 * f['inside']:.0f} %"
        root = "-" if name == "mean pose" else f"{f['root']:.0f}"
        lines.append(
            f"| {name} | {f['mpjpe']:.1f} | {f['p_mpjpe']:.1f} | {f['acceleration']:.2f} | {inside} | {root} |"
        )
    return "\n".join(lines)


def angle_table(figures: Figures, condition: str) -> str:
    """Markdown: bias and error of knees and elbows of every model under one condition, by true angle."""
    lines = []
    for name, rows in figures.items():
        for joint, bins in rows[condition]["angles"].items():
            if not lines:
                spans = [f"{b['above']:.0f}-{b['below']:.0f}°" for b in bins[:-1]] + [f"over {bins[-1]['above']:.0f}°"]
                lines = [f"| model | joint | {' | '.join(spans)} |", "|---|---|" + "---|" * len(bins)]
            cells = [f"{b['bias']:+.0f} ({b['error']:.0f})" if b["count"] else "-" for b in bins]
            lines.append(f"| {name} | {joint} | {' | '.join(cells)} |")
    return "\n".join(lines)


def accuracy_section(figures: Figures) -> str:
    """What docs/studies/lifter.md says about accuracy, between its markers."""
    headings = {
        "ui-prmd gt": "Another laboratory (UI-PRMD s09, s10), exact 2D; people unknown, laboratory and exercises known",
        "ui-prmd detector": "The same people through a detector's skeleton with its errors",
        "gt": "CMU test subjects, exact 2D of the 17 joints; people unknown, laboratory and most kinds of motion known",
        "white": "The same with white noise of 5 px in an image 1000 px wide",
        "noisy": "The same with a detector's errors instead",
        "detector": "A detector's skeleton with its errors",
        "hard": "Exact 2D of the test people in strongly changed poses",
    }
    parts = [f"{headings[condition]}:\n\n{table(figures, condition)}" for condition in figures["offline"]]
    angles = [f"{headings[condition]}:\n\n{angle_table(figures, condition)}" for condition in figures["offline"]]
    return "\n\n".join([*parts, "![Errors over the look-ahead](images/lookahead.png)", ANGLES, *angles])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accuracy", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    figures: dict[str, Any] = json.loads(options.accuracy.read_text(encoding="utf-8"))["figures"]
    plot(figures, options.out)
    print(accuracy_section(figures))


if __name__ == "__main__":
    main()
