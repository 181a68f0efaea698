"""Write the cards of the shipped lifters and of the forecaster from their training runs and their measured accuracy.

    pose-train lifter --config configs/train/offline.yaml --data.mocap cmu.npz,ui-prmd.npz --out runs/offline
    cp runs/offline/final.safetensors pose/models/offline.safetensors                         # and the same for stream
    pose-export offline --format onnx --out pose/models/offline.onnx --overwrite
    python -m benchmarks.lifter accuracy --mocap cmu.npz,ui-prmd.npz --out docs/studies/lifter-accuracy.json
    python -m benchmarks.lifter cards

writes pose/models/offline.json, stream.json and README.md, docs/studies/images/lookahead.png, and what stands between
the "accuracy" markers of docs/studies/lifter.md. A lifter without a folder in --runs keeps its weights and commands.

    pose-prepare forecast --source cmu.npz,ui-prmd.npz --out motions.npz --sequences 6144
    pose-train forecaster --config configs/train/forecaster.yaml --data.motions motions.npz --out runs/forecaster
    python -m benchmarks.lifter ship-forecaster
    pose-eval forecast --motions motions.npz --forecasters forecaster zero-velocity ... --out results
    python -m benchmarks.lifter forecaster-card

copies the weights into pose/models, exports them, and writes pose/models/forecaster.json. Everything is checked before
anything is written: the weights in pose/models must be those that were measured, those of the run, and those that the
ONNX files were exported from.
"""

import json
import shutil
from argparse import ArgumentParser, Namespace
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from pose_apps.train import main as pose_train

from pose.errors import PoseError
from pose.lifting.backends import OnnxGraph
from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.forecast.build import load_network
from pose.lifting.forecast.config import HORIZONS
from pose.lifting.forecast.exchange import export_forecaster
from pose.lifting.forecast.network import ForecasterNetwork
from pose.lifting.forecast.runtime import SHIPPED, OnnxForecaster
from pose.lifting.model import LifterNetwork
from pose.networks.weights import sha256_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("offline", "stream")
PURPOSE = {
    "offline": "Lifts the 2D keypoints of one person to 3D, over whole windows of a recorded video; `sliding` streams "
    "with the same weights.",
    "stream": "Lifts the 2D keypoints of one person to 3D, frame by frame, 0 to 40 frames late.",
}
DATA = {
    "name": "CMU Graphics Lab Motion Capture Database and UI-PRMD, seen by virtual cameras",
    "source": "http://mocap.cs.cmu.edu, https://doi.org/10.3390/data3010002",
    "terms": "CMU: free for use in research projects and in products that are sold; the data themselves may not be "
    "resold, even in converted form. UI-PRMD: Open Data Commons Public Domain Dedication and License 1.0.",
    "acknowledgement": "The data used in this project was obtained from mocap.cs.cmu.edu. The database was created "
    "with funding from NSF EIA-0196217. UI-PRMD: Vakanski, Jun, Paul, Baker, A Data Set of Human Body Movements for "
    "Physical Rehabilitation Exercises, Data 3(1):2, 2018.",
}
# CMU subjects whose recordings are on one common figure (`pose_datasets.mocap`).
SAME_FIGURE = frozenset({"06", "07", "12", "13", "60", "94"})
REPEATABILITY = (  # of the weights that are shipped now; change it with them
    "The commands do not give these weights again. They start from the weights of version 0.1.0 (two runs from random "
    "weights, in the card of commit 10fac57), use the code of their day, and its split by name of subject. Today's "
    "`pose-train` splits by body: it trains on 07, 12 and 60 and keeps 05, 09, 17, 131 and 135 for validation. "
    "A run and its resumption are equal bit by bit on one machine only. Figures for bodies that were never in training "
    "are in docs/studies/splits.md."
)
MEASURED_BY = "python -m benchmarks.lifter accuracy --mocap cmu.npz,ui-prmd.npz --out docs/studies/lifter-accuracy.json"
BASELINES = ("mean pose", "single-frame MLP")  # on every card, for comparison
START = "train.start_from"
PREVIOUS = "acfa3de5"  # the commit whose model cards say how the weights were made that runs start from by name
# Of a run, but not of what it learns from or how.
INCIDENTAL = {"out", "resume", "overwrite", "quiet", "config", "data.mocap"}
Figures = dict[str, dict[str, dict[str, Any]]]  # model -> condition -> figure -> value

STREAM = "stream, look-ahead "
FPS = 30
CURVES = {"gt": "exact 2D", "detector": "detector-like 2D"}
PANELS = {"mpjpe": "MPJPE, mm", "p_mpjpe": "P-MPJPE, mm", "acceleration": "acceleration error, mm/frame²"}


def settings(recipe: Path) -> dict[str, Any]:
    """Every field of a recipe, defaults included, by its name on the command line."""
    printed = StringIO()
    with redirect_stdout(printed):
        try:
            pose_train(["lifter", "--config", str(recipe), "--out", "run", "--print_config"])
        except SystemExit as end:  # so argparse ends what only prints
            if end.code:
                raise PoseError(f"{recipe}: not a recipe of pose-train") from None
    return flat(yaml.safe_load(printed.getvalue()))


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}. Free-form options stay one value."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, dict) and key != "attention_options"
        found |= flat(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return found


def changes(recipe: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """What a run was given beyond its recipe."""
    return {key: value for key, value in run.items() if key not in INCIDENTAL and recipe.get(key) != value}


def card(name: str, run: Path, models: Path, results: dict[str, Any]) -> dict[str, Any]:
    """The model card of `models/NAME.safetensors`, trained in `run`. Raises PoseError where the parts do not belong
    together."""
    path = models / f"{name}.safetensors"
    sha256 = sha256_of(path)
    check_belongs(name, path, sha256, run, results)
    return {
        "name": name,
        "purpose": PURPOSE[name],
        "licence": "Apache-2.0",
        "data": DATA | results["data"],
        "bodies": {part: bodies(results["data"][part]["subjects"]) for part in ("train", "validation", "test")},
        "repeatability": REPEATABILITY,
        "recipe": f"configs/train/{name}.yaml",
        "commands": commands(name, run),
        "seed": used_settings(run)["train.seed"],
        **identity(path, load_checkpoint(path), run),
        "metrics": {
            "command": MEASURED_BY,
            "unit": "mm, mm/frame^2 at 30 frames a second; root-relative, 17 joints; inside: share within one sigma",
            "figures": figures_of(name, results),
        },
    }


def figures_of(name: str, results: dict[str, Any]) -> Figures:
    """The measured figures of a lifter, and of the baselines."""
    return {key: rows for key, rows in results["figures"].items() if key.startswith((name, *BASELINES))}


def measured_again(name: str, models: Path, results: dict[str, Any]) -> dict[str, Any]:
    """The card of weights that stay, with the newly measured figures."""
    path = models / f"{name}.safetensors"
    check_measured(name, path, sha256_of(path), results)
    kept: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    kept["data"]["test"], kept["bodies"]["test"] = results["data"]["test"], bodies(results["data"]["test"]["subjects"])
    return kept | {"repeatability": REPEATABILITY, "metrics": kept["metrics"] | {"figures": figures_of(name, results)}}


def bodies(subjects: list[str]) -> int:
    """The number of bodies: subjects recorded on one figure are one."""
    return len({"same" if subject in SAME_FIGURE else subject for subject in subjects})


def identity(path: Path, network: LifterNetwork | ForecasterNetwork, run: Path) -> dict[str, Any]:
    """What a card says of a file of weights itself, and of when `run` ended."""
    return {
        "date": datetime.fromtimestamp((run / "final.safetensors").stat().st_mtime, UTC).date().isoformat(),
        "sha256": sha256_of(path),
        "bytes": path.stat().st_size,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "network": network.config.to_dict(),
    }


def used_settings(run: Path) -> dict[str, Any]:
    return flat(yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8")))


def commands(name: str, run: Path) -> list[str]:
    """How to repeat a run: its command, and before it those of the runs that it started from."""
    recipe = f"configs/train/{name}.yaml"
    used = used_settings(run)
    extra = changes(settings(ROOT / recipe), used)
    earlier: list[str] = []
    starts = []
    for start in extra[START].split(",") if START in extra else ():
        if start in NAMES:
            earlier.append(f"# {START}={start}: the weights of commit {PREVIOUS}")
            starts.append(start)
        else:
            earlier += commands(name, Path(start).parent)
            starts.append(f"runs/{Path(start).parent.name}/{Path(start).name}")
    if starts:
        extra[START] = ",".join(starts)
    files = ",".join(Path(file).name for file in used["data.mocap"].split(","))
    command = ["pose-train lifter", f"--config {recipe}", f"--data.mocap {files}", f"--out runs/{run.name}"]
    command += [f"--{key}={_plain(value)}" for key, value in extra.items()]
    return list(dict.fromkeys([*earlier, " ".join(command)]))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def check_belongs(name: str, path: Path, sha256: str, run: Path, results: dict[str, Any]) -> None:
    """PoseError unless the weights are those of the run, those measured and those exported."""
    check_measured(name, path, sha256, results)
    if sha256_of(run / "final.safetensors") != sha256:
        raise PoseError(f"{path}: not the final weights of {run}")
    onnx = path.with_suffix(".onnx")
    if onnx.is_file() and OnnxGraph(onnx).metadata.get("checkpoint_sha256") != sha256:
        raise PoseError(f"{onnx}: not exported from these weights; run pose-export {name} again")


def check_measured(name: str, path: Path, sha256: str, results: dict[str, Any]) -> None:
    """PoseError unless the weights are those measured."""
    if results["sha256"][name] != sha256:
        raise PoseError(f"{path}: not the weights that were measured; run `benchmarks.lifter accuracy` again")


def unseen_line(data: dict[str, Any]) -> str:
    """What is new about the test subjects: all, or all but the figures of some."""
    trained = SAME_FIGURE & set(data["train"]["subjects"])
    shared = [subject for subject in data["test"]["subjects"] if trained and subject in SAME_FIGURE]
    if not shared:
        return "No training batch held these bodies."
    return f"No training batch held these subjects, but some held the figure of {' and '.join(shared)}."


def snu_line(subjects: list[str]) -> str:
    """Whether SNU's motion was used, whose licence is that of public repositories (docs/guides/data.md)."""
    used = [subject for subject in subjects if subject.startswith("snu-")]
    if not used:
        return "SNU's motion (`pose-prepare snu`) was not used."
    return (
        f"SNU's motion was used ({', '.join(used)}: github.com/snumrl/VSports, Apache-2.0, and InteractiveAnimation; "
        "docs/guides/data.md); `--data.without '[\"snu-*\"]'` trains without it."
    )


def document(cards: list[dict[str, Any]]) -> str:
    """The README of the models' folder."""
    data = cards[0]["data"]
    lines = [
        "# Lifters",
        "",
        "2D keypoints of one person over time in, 3D joints in metres with their uncertainty out; see "
        "docs/reference/lifter-model.md.",
        "The weights are licensed under Apache-2.0, like the program. Each card is also there as `NAME.json`.",
        "",
        "## Data",
        "",
        f"{data['name']} ({data['source']}). {data['terms']} {data['acknowledgement']}",
        "",
        "No images and no body scans were used: people differ in their bone lengths only. Most of those recorded are",
        "adults who walk, run, dance, exercise and do sports; expect larger errors in poses that are rarer still,",
        "where people touch or hide each other, and where the 2D is wrong for long.",
    ]
    for one in cards:
        lines += ["", f"## {one['name']}", "", one["purpose"], "", *data_lines(one), ""]
        lines += [*(f"    {command}" for command in one["commands"]), "", one["repeatability"], ""]
        lines += [
            f"{one['parameters']:,} parameters, {one['bytes'] / 1e6:.1f} MB, seed {one['seed']}, {one['date']},",
            f"SHA-256 `{one['sha256']}`.",
            "",
            "| answer, 2D | MPJPE mm | P-MPJPE mm | acceleration mm/frame² | inside one sigma |",
            "|---|---|---|---|---|",
        ]
        for key, rows in one["metrics"]["figures"].items():
            late = key if key in BASELINES else key.partition(", ")[2] or "whole window"
            for condition, f in rows.items():
                lines.append(
                    f"| {late}, {condition} | {f['mpjpe']:.1f} | {f['p_mpjpe']:.1f} | {f['acceleration']:.2f} "
                    f"| {'-' if key == 'mean pose' else format(100 * f['inside'], '.0f') + ' %'} |"
                )
    lines += ["", f"The figures are those of `{MEASURED_BY}`, whose docstring says what the conditions are.", ""]
    return "\n".join(lines)


def data_lines(card: dict[str, Any]) -> list[str]:
    """The subjects that a lifter was trained and measured on."""
    data = card["data"]
    subjects = {
        part: f"{', '.join(data[part]['subjects'])}: {card['bodies'][part]} bodies"
        for part in ("train", "validation", "test")
    }
    return [
        f"- Trained on subjects {subjects['train']}, {data['train']['minutes']} minutes.",
        f"- Watched and calibrated on {subjects['validation']}, {data['validation']['minutes']} minutes.",
        f"- Measured on {subjects['test']}, {data['test']['minutes']} minutes. {unseen_line(data)}",
        f"- {snu_line(data['train']['subjects'])}",
    ]


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


def accuracy_section(figures: Figures) -> str:
    """What docs/studies/lifter.md says about accuracy, between its markers: one row a model, one column a condition."""
    conditions = {"ui-prmd gt": "UI-PRMD, exact 2D", "ui-prmd detector": "UI-PRMD, a detector's"}
    conditions |= {"gt": "CMU, exact 2D", "detector": "CMU, a detector's"}
    lines = [f"| model | {' | '.join(conditions.values())} |", "|---" * (len(conditions) + 1) + "|"]
    for name in ("offline", f"{STREAM}0", "single-frame MLP"):
        cells = [
            f"{f['mpjpe']:.1f} / {f['p_mpjpe']:.1f}, {f['acceleration']:.2f}, {100 * f['inside']:.0f} %"
            for f in map(figures[name].__getitem__, conditions)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", "![Errors over the look-ahead](images/lookahead.png)"])


def between(text: str, marker: str, content: str) -> str:
    """`text` with what stands between `<!-- marker -->` and `<!-- /marker -->` replaced."""
    begin, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->"
    if begin not in text or end not in text:
        raise PoseError(f"the markers {begin.strip()} and {end} are missing")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n{content.strip()}\n\n{end}{rest.partition(end)[2]}"


def ship_forecaster(run: Path, models: Path) -> None:
    """Make the run's final weights the shipped ones, with their ONNX file."""
    target = models / "forecaster.safetensors"
    shutil.copyfile(run / "final.safetensors", target)
    export_forecaster(load_network(target), target.with_suffix(".onnx"), sha256_of(target))


def forecaster_card(path: Path, run: Path, results: list[dict[str, Any]], made: str) -> dict[str, Any]:
    """The model card of the shipped forecaster. Raises PoseError where the parts do not belong together."""
    sha256 = sha256_of(path)
    measured = {result["sha256"]: result for result in results}
    if sha256 not in measured or OnnxForecaster.beside(path, SHIPPED) is None:
        raise PoseError(f"{path}: not the measured or exported weights; run pose-eval forecast, or ship-forecaster")
    settings = used_settings(run)
    return {
        "name": "forecaster",
        "purpose": "Predicts the next second of people's 3D motion from the last one.",
        "licence": "Apache-2.0",
        "data": DATA,
        "recipe": "configs/train/forecaster.yaml",
        "training": made,
        "seed": settings["train.seed"],
        "steps": settings["train.steps"],
        **identity(path, load_network(path), run),
        "metrics": {
            "command": "pose-eval forecast",
            "unit": "mm at seconds ahead; inside: share within one sigma",
            "horizons": HORIZONS,
            "figures": measured[sha256]["figures"],
        },
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--models", type=Path, default=ROOT / "pose" / "models")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "studies")
    parser.add_argument("--accuracy", type=Path, default=ROOT / "docs/studies/lifter-accuracy.json")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the training runs")
    parser.add_argument("--results", type=Path, default=Path("results/forecast.json"))
    parser.add_argument("--made", default="", help="how the parts that the run began with were trained")


def main(given: Namespace) -> None:
    models: Path = given.models
    if given.command == "ship-forecaster":
        ship_forecaster(given.runs / "forecaster", models)
    elif given.command == "forecaster-card":
        results = json.loads(given.results.read_text(encoding="utf-8"))
        made = forecaster_card(models / "forecaster.safetensors", given.runs / "forecaster", results, given.made)
        write_json(models / "forecaster.json", made)
    else:
        accuracy = json.loads(given.accuracy.read_text(encoding="utf-8"))
        cards = [
            card(name, given.runs / name, models, accuracy)
            if (given.runs / name).is_dir()
            else measured_again(name, models, accuracy)
            for name in NAMES
        ]
        page = given.docs / "lifter.md"
        text = between(page.read_text(encoding="utf-8"), "accuracy", accuracy_section(accuracy["figures"]))
        for one in cards:
            write_json(models / f"{one['name']}.json", one)
        (models / "README.md").write_text(document(cards), encoding="utf-8")
        page.write_text(text, encoding="utf-8")
        plot(accuracy["figures"], given.docs / "images" / "lookahead.png")
