"""Write the card of the shipped forecaster, and the tables and plots of docs/studies/forecast.md.

    pose-prepare forecast --source cmu.npz,ui-prmd.npz --out motions.npz --sequences 6144
    pose-train forecaster --config configs/train/forecaster.yaml --data.motions motions.npz --out runs/forecaster
    python benchmarks/forecast_report.py --ship runs/forecaster
    pose-eval forecast --motions motions.npz --forecasters forecaster zero-velocity ... --out results
    python benchmarks/forecast_report.py --results results/forecast.json --run runs/forecaster --motions motions.npz

`--ship RUN` alone copies a run's final weights into pose/models and exports them, which comes before measuring them.
Everything is checked before anything is written: the weights in pose/models must be those measured and exported.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from forecast_cost import cost_table
from model_cards import DATA, between, identity, used_settings
from pose_apps.evaluate.forecasts import tables
from pose_datasets.forecast_training import MotionSamples
from pose_datasets.forecasting import load_motions

from pose.errors import PoseError
from pose.lifting.forecast import load_forecaster
from pose.lifting.forecast.build import load_network
from pose.lifting.forecast.exchange import export_forecaster
from pose.lifting.forecast.format import HORIZONS
from pose.lifting.forecast.runtime import SHIPPED, OnnxForecaster
from pose.networks.weights import sha256_of
from pose.view.comparison import draw_comparison, save_picture

ROOT = Path(__file__).resolve().parents[1]
SHOWN = (0.08, 0.4, 1.0)  # s ahead, of the images
PEOPLE = 8


def ship(run: Path, models: Path) -> None:
    """The run's final weights as the shipped ones, and their ONNX file."""
    target = models / "forecaster.safetensors"
    shutil.copyfile(run / "final.safetensors", target)
    export_forecaster(load_network(target), target.with_suffix(".onnx"), sha256_of(target))


def card(path: Path, run: Path, results: list[dict[str, Any]], made: str) -> dict[str, Any]:
    """The model card of the shipped forecaster. Raises PoseError where the parts do not belong together."""
    sha256 = sha256_of(path)
    measured = {result["sha256"]: result for result in results}
    if sha256 not in measured or OnnxForecaster.beside(path, SHIPPED) is None:
        raise PoseError(f"{path}: not the weights that were measured or exported; run pose-eval forecast, or --ship")
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


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Error over the horizon from both kinds of past, and the share inside one sigma of the shipped forecaster."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(12, 3.6), layout="constrained")
    truth, pipeline, shares = drawing.subplots(1, 3)
    milliseconds = [1000 * horizon for horizon in HORIZONS]
    for axes, source in ((truth, "truth"), (pipeline, "pipeline")):
        for number, result in enumerate(results):
            ours = result["name"] == SHIPPED
            values = result["figures"][source]["mpjpe"]
            axes.plot(milliseconds, values, "o-", ms=3, lw=3 if ours else 1, color=f"C{number}", label=result["name"])
        axes.set(title=f"past: {source}", xlabel="ms ahead", ylabel="MPJPE, mm")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        inside = next(result for result in results if result["name"] == SHIPPED)["figures"][source]["inside"]
        shares.plot(milliseconds, [100 * share for share in inside], "o-", ms=3, label=f"past: {source}")
    pipeline.legend(fontsize=7, loc="lower right")
    shares.axhline(68.27, color="grey", lw=1, ls="--")
    shares.set(title=f"{SHIPPED}: joints inside one sigma", xlabel="ms ahead", ylabel="%", ylim=(0, 100))
    shares.grid(alpha=0.3)
    shares.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=80)


def draw_poses(motions: Path, path: Path) -> None:
    """Eight people who move, every row `SHOWN` seconds ahead from front and side: true grey, predicted in colour."""
    samples = MotionSamples(load_motions(motions, "test"), 1.0)
    rows, frames = samples.evaluation_samples()
    past, _ = samples.past((rows, frames), np.zeros(len(rows), bool))
    times = past.times[np.arange(len(past)), past.last()][:, None] + np.array(SHOWN)
    joints, _ = samples.future(rows, times)
    moved = np.linalg.norm(joints[:, -1] - past.joints[np.arange(len(past)), past.last()], axis=-1).mean(axis=-1)
    chosen = np.argsort(moved)[(np.linspace(0.3, 0.95, PEOPLE) * (len(moved) - 1)).astype(int)]  # from little to much
    found = load_forecaster(SHIPPED).predict(past, times).joints[chosen]
    bands = [draw_comparison(found[:, shown], joints[chosen, shown]) for shown in range(len(SHOWN))]
    save_picture(np.concatenate(bands), path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ship", type=Path, metavar="RUN", help="make this run's final weights the shipped ones")
    parser.add_argument("--results", type=Path, help="what pose-eval forecast wrote")
    parser.add_argument("--run", type=Path, help="folder of the training run of the shipped forecaster")
    parser.add_argument("--made", default="", help="how the parts that the run began with were trained, for the card")
    parser.add_argument("--motions", type=Path, help="what pose-prepare forecast wrote, for the images")
    parser.add_argument("--models", type=Path, default=ROOT / "pose" / "models")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "studies")
    options = parser.parse_args(argv)
    if options.ship:
        ship(options.ship, options.models)
        return 0
    if not (options.results and options.run and options.motions):
        parser.error("needs --results, --run and --motions, or --ship")
    results = json.loads(options.results.read_text(encoding="utf-8"))
    page = options.docs / "forecast.md"
    try:
        made = card(options.models / "forecaster.safetensors", options.run, results, options.made)
        text = between(page.read_text(encoding="utf-8"), "figures", "\n\n".join(tables(results)))
        text = between(text, "cost", "\n".join(cost_table()))
    except PoseError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    (options.models / "forecaster.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    page.write_text(text, encoding="utf-8")
    plot(results, options.docs / "images" / "forecast-horizon.png")
    draw_poses(options.motions, options.docs / "images" / "forecast-poses.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
