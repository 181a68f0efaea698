"""Tables and plots of the trial logs, generated as Markdown and SVG for a documentation page."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose.training.laboratory.experiment import Experiment, Published
from pose.training.laboratory.kinds import kind_of
from pose.training.laboratory.log import Record, TrialLog, digest
from pose.training.laboratory.run import current_records
from pose.training.laboratory.statistics import mean_and_half_width, wilson_interval
from pose.utils.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEGIN, END = "<!-- pose-lab: {} -->", "<!-- pose-lab end -->"
TOTAL = "<!-- pose-lab total -->"
NOT_RUN = "Not run yet."
OTHER_TRIALS = "The finding in {}.yaml is about other trials than these, whose `found_in` is {}."
COMPARED = ("gt", "detector")  # results of which each has its own differences, if a kind has both
RecordsByCondition = Mapping[str, Sequence[Record]]  # condition -> its records, one per seed


def records_by_condition(experiment: Experiment, folder: Path) -> RecordsByCondition:
    """Return the current records in `folder` by condition, in the experiment's order; each list is sorted by seed."""
    records = current_records(experiment, TrialLog(folder, experiment.name).records())
    by_condition = {name: [record for record in records if record.condition == name] for name in experiment.conditions}
    return {name: sorted(some, key=lambda record: record.seed) for name, some in by_condition.items() if some}


def format_section(experiment: Experiment, folder: Path) -> str:
    """Format the claim, the table, the cost and the finding as Markdown. Conditions without records are listed."""
    records = records_by_condition(experiment, folder)
    if not records:
        return f"{experiment.claim}\n\n{NOT_RUN}"
    parts = [experiment.claim, format_table(experiment, records), format_cost(experiment, records)]
    if missing := [name for name in experiment.conditions if name not in records]:
        parts[-1] += f" Not run: {', '.join(missing)}."
    if experiment.finding:
        known = [record for some in records.values() for record in some]
        ours = experiment.found_in in ("", digest(known))
        other = OTHER_TRIALS.format(experiment.name, digest(known))
        parts.append(f"**Found:** {experiment.finding}" if ours else other)
    return "\n\n".join(parts)


def format_table(experiment: Experiment, records: RecordsByCondition) -> str:
    """Format the table of results: results are columns if the kind names them, otherwise rows."""
    answered = {key for some in records.values() for record in some for key in record.results}
    columns = kind_of(experiment).columns
    if not columns:
        keys = dict.fromkeys(key for some in records.values() for record in some for key in record.results)
        rows = [[key, *(format_cell(some, key) for some in records.values())] for key in keys]
        return markdown(["", *records], rows)
    columns = {key: title for key, title in columns.items() if key in answered}
    printed = {key for entries in experiment.published.values() for key in entries}
    titles = [title for key, title in columns.items() for title in [title, *(["published"] if key in printed else [])]]
    rows = []
    for name, some in records.items():
        row = [name]
        for key in columns:
            row.append(format_cell(some, key))
            if key in printed:
                row.append(format_published(experiment.published.get(name, {}).get(key)))
        rows.append(row)
    # Conditions share their seeds and bodies, so paired differences vary less than the means.
    for key in [key for key in COMPARED if key in columns] or [next(iter(columns))]:
        for over, values in (("seeds", _by_seed(records, key)), ("bodies", _by_body(records, key))):
            if differences := paired_differences(values):
                of = f"{columns[key].partition(':')[0]}: " if key in COMPARED else ""
                titles.append(f"{of}difference to {next(iter(records))}, paired over {over}")
                rows = [[*row, differences.get(row[0], "")] for row in rows]
    return markdown(["", *titles], rows)


def paired_differences(values: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return each condition's mean difference to the first, by seed or body, with half of its 95 % interval."""
    base, *others = values.values()
    found = {}
    for name, results in zip(list(values)[1:], others, strict=True):
        known = [value - base[unit] for unit, value in results.items() if unit in base]
        if len(known) > 1:
            mean, half = mean_and_half_width(known)
            text = f"{format_like_uncertainty(half, half)}" if half else "0"
            found[name] = f"{format_like_uncertainty(mean, half) if half else format_number(mean)} ± {text}"
    return found


def _by_seed(records: RecordsByCondition, key: str) -> dict[str, dict[str, float]]:
    """Return the finite results `key` of each condition by seed."""
    return {
        name: {str(record.seed): value for record in some if (value := record.results.get(key)) is not None}
        for name, some in records.items()
    }


def _by_body(records: RecordsByCondition, key: str) -> dict[str, dict[str, float]]:
    """Return the means over common seeds of the results `key@LABORATORY SUBJECT` of each condition by body."""
    common = set.intersection(*({record.seed for record in some} for some in records.values()))
    found = {}
    for name, all_seeds in records.items():
        some = [record for record in all_seeds if record.seed in common]
        bodies = {result for record in some for result in record.results if f"{key}@" in result and " " in result}
        values = {body: [record.results.get(body) for record in some] for body in sorted(bodies)}
        known = {body: [value for value in each if value is not None] for body, each in values.items()}
        found[name] = {body: sum(each) / len(each) for body, each in known.items() if each}
    return found


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(re.sub(r"\| +(?=\|)", "| ", f"| {' | '.join(line)} |") for line in lines)


def format_cell(records: Sequence[Record], key: str) -> str:
    """Format one result: the mean over seeds and half of its 95 % interval, and the number of non-finite trials."""
    answers = [record.results[key] for record in records if key in record.results]
    values = [value for value in answers if value is not None]
    diverged = f"{len(answers) - len(values)} of {len(answers)} diverged" if len(values) < len(answers) else ""
    if not values:
        return diverged
    mean, half = mean_and_half_width(values)
    if len(values) == 1:
        half = records[0].half_widths.get(key, math.nan)
    text = (
        format_number(mean)
        if math.isnan(half) or half == 0
        else f"{format_like_uncertainty(mean, half)} ± {format_like_uncertainty(half, half)}"
    )
    return f"{text}, {diverged}" if diverged else text


def format_published(entry: Published | None) -> str:
    """Format a published result, with the 95 % confidence interval of a percentage; empty if there is none."""
    if entry is None:
        return ""
    if not entry.of:
        return f"{entry.value:g}"
    low, high = wilson_interval(entry.value / 100, entry.of)
    return f"{entry.value:g} ({100 * low:.1f} to {100 * high:.1f})"


def format_number(value: float) -> str:
    """Format a number with three significant digits; below a million, integer digits are never rounded."""
    if value == 0 or not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def format_like_uncertainty(value: float, half_width: float) -> str:
    """Format `value` with as many decimals (at most four) as `half_width` has with two significant digits."""
    if abs(value) >= 1e5 or half_width >= 1e5:
        return f"{value:.2g}"
    decimals = min(4, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{value:,.{decimals}f}" if abs(value) >= 10**-decimals or value == 0 else f"{value:.2g}"


def format_cost(experiment: Experiment, records: RecordsByCondition) -> str:
    """Format the number of trials and their processor time in one line."""
    all_records = [record for some in records.values() for record in some]
    seeds = sorted({len(some) for some in records.values()})
    if not kind_of(experiment).seeded:
        spent = sum(record.cpu_seconds for record in all_records)
        errors = "; ± is half a 95 % interval over sequences" if any(r.half_widths for r in all_records) else ""
        return f"{len(all_records)} trials without randomness, {spent:,.0f} processor seconds{errors}."
    repeated = f"{' to '.join(str(n) for n in {seeds[0]: 0, seeds[-1]: 0})} seed{'s' if seeds[-1] > 1 else ''} each"
    errors = "; ± is half a 95 % interval over seeds (Student's t)" if seeds[-1] > 1 else ""
    steps = sorted({record.steps for record in all_records})
    trained = f", {steps[0]:,}{f' to {steps[-1]:,}' if len(steps) > 1 else ''} steps" if steps[-1] > 1 else ""
    seconds = sum(record.cpu_seconds for record in all_records)
    return f"{len(all_records)} trials, {repeated}{trained}, {seconds:,.0f} processor seconds{errors}."


def format_total(experiments: Mapping[str, Experiment], folder: Path) -> str:
    """Format one line with the processor time of all trials in the logs of `folder`."""
    all_records = [
        r
        for experiment in experiments.values()
        for some in records_by_condition(experiment, folder).values()
        for r in some
    ]
    ran = len({record.experiment for record in all_records})
    minutes = sum(record.cpu_seconds for record in all_records) / 60
    return f"{ran} experiments, {len(all_records)} trials, {minutes:,.0f} processor minutes."


def update_page(page: Path, experiments: Mapping[str, Experiment], folder: Path) -> list[str]:
    """Replace the generated parts of a page, save its plots in `images` beside it, and return its experiments.

    A pair of HTML comments with the name of an experiment marks the place of its section; another marks the total. A
    page without marks, or with one of an unknown experiment, is a UsageError.
    """
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(r"<!-- pose-lab: ([\w-]+) -->\n.*?" + re.escape(END), re.DOTALL)
    names = [match[1] for match in pattern.finditer(text)]
    if not names and TOTAL not in text:
        raise UsageError(f"{page}: contains no {BEGIN.format('NAME')} ... {END}")
    for name in names:
        if name not in experiments:
            raise UsageError(f"{page}: no experiment {name}; known: {', '.join(experiments)}")

    def replacement(match: re.Match[str]) -> str:
        experiment = experiments[match[1]]
        body = format_section(experiment, folder)
        if experiment.plot and records_by_condition(experiment, folder):
            picture = page.parent / "images" / f"lab-{experiment.name}.svg"
            picture.parent.mkdir(parents=True, exist_ok=True)
            write_whole(picture, draw_plot(experiment, records_by_condition(experiment, folder)))
            body += f"\n\n![{experiment.name}](images/{picture.name})"
        return f"{BEGIN.format(experiment.name)}\n{body}\n{END}"

    text = pattern.sub(replacement, text)
    everything = re.compile(re.escape(TOTAL) + r"\n.*?" + re.escape(END), re.DOTALL)
    write_whole(page, everything.sub(lambda match: f"{TOTAL}\n{format_total(experiments, folder)}\n{END}", text))
    return names


def draw_plot(experiment: Experiment, records: RecordsByCondition) -> str:
    """Draw the experiment's plot as SVG: means and 95 % confidence intervals over seeds."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise PoseError('plots need matplotlib: pip install "pose-run[train]"') from error
    from pose.training.evaluation.report import COLOURS, figure

    plot = experiment.plot
    assert plot is not None
    series: dict[str, list[tuple[float, float, float]]] = {}
    for name, some in records.items():
        settings = experiment.conditions[name]
        values = [value for record in some if (value := record.results.get(plot.y)) is not None]
        if plot.x in settings and values:
            mean, half = mean_and_half_width(values)
            x = float(settings[plot.x])  # type: ignore[arg-type]
            series.setdefault(str(settings.get(plot.by, "")), []).append((x, mean, 0.0 if math.isnan(half) else half))

    def lines(axes: "Axes") -> None:
        for colour, (label, points) in zip(COLOURS, series.items(), strict=False):
            x, mean, half = zip(*sorted(points), strict=True)
            # a logarithmic axis cannot show 0
            low = [min(h, 0.9 * m) if plot.log else h for m, h in zip(mean, half, strict=True)]
            axes.errorbar(x, mean, yerr=(low, half), label=label, color=colour, capsize=3, marker="o")
        if plot.log:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
        axes.set_xlabel(plot.x)
        axes.set_ylabel(kind_of(experiment).columns.get(plot.y, plot.y))
        if any(series):
            axes.legend(title=plot.by, frameon=False)

    return figure(lines, width=7.0, height=3.6)
