"""HTML report of an evaluation: one self-contained file with tables, and plots as inline SVG."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from pose.training.evaluation import plots
from pose.training.evaluation.results import EvaluationResult, benchmark_of, tables
from pose.training.evaluation.table import Table, footnote, lookahead_table, measure_table, part_table, speed_table

# Additions to the style sheet of the live page, which defines the colours.
_STYLE = """
body { font-size: 15px; margin: 2rem auto; padding: 0 1rem; max-width: 76rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; background: var(--card); }
th, td { padding: .25rem .55rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } .averaged td:last-child { font-weight: 600; }
figure { margin: 1rem 0; padding: .75rem; } figcaption { position: static; font-size: .85rem; }
svg { max-width: 100%; height: auto; background: #fff; border-radius: 6px; } code { overflow-wrap: anywhere; }
"""


def html_report(results: Sequence[EvaluationResult]) -> str:
    """Return the HTML page of the results, with one section per benchmark."""
    sections = "\n".join(_section(group) for group in tables(results))
    names = ", ".join(dict.fromkeys(result["name"] for result in results))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>pose-eval: {escape(names)}</title><style>{_page_style()}{_STYLE}</style></head>\n"
        f"<body><h1>pose-eval: {escape(names)}</h1>\n{sections}\n</body></html>\n"
    )


def _page_style() -> str:
    return (files("pose.live.web") / "static" / "style.css").read_text(encoding="utf-8")


def _section(results: list[EvaluationResult]) -> str:
    benchmark = benchmark_of(results[0])
    parts = [f"<h2>{escape(benchmark.title)}</h2>"]
    parts.extend(_table(measure_table(results, name)) for name in benchmark.measures)
    if note := footnote(results):
        parts.append(f"<p>{escape(note)}</p>")
    parts.append(_figure("Error by action", plots.by_action(results)))
    parts.append(_figure("Error by joint, relative to the pelvis", plots.by_joint(results)))
    if curves := [result for result in results if result["lookahead"]]:
        parts.append(_figure("Accuracy against latency", plots.latency(curves)))
        parts.extend(_table(lookahead_table(result)) for result in curves)
    for result in results:
        parts.extend(_details(result))
    parts.append(_table(speed_table(results)))
    return "\n".join(parts)


def _details(result: EvaluationResult) -> list[str]:
    name = result["name"]
    parts = [f"<h2>{escape(name)}</h2>"]
    if result["sha256"]:
        parts.append(f"<p>Weights: SHA-256 <code>{escape(result['sha256'])}</code></p>")
    if result["over_time"]:
        parts.append(
            _figure(f"{name}: error over time of the best, the median and the worst sequence", plots.over_time(result))
        )
    if calibration := result["calibration"]:
        inside = 100 * calibration["inside_one_sigma"]
        caption = f"{name}: {inside:.1f} % of errors lie within one sigma (expected: 68 %)"
        parts.append(_figure(caption, plots.uncertainty(result)))
    return [*parts, *(_table(part_table(result, part)) for part in ("joints", "cameras", "subjects"))]


def _figure(caption: str, svg: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    kind = ' class="averaged"' if table.averaged else ""
    body = f"<table{kind}><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<h3>{escape(table.title)}</h3><div class="scroll">{body}</div>'
