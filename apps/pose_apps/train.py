"""`pose-train`: train a lifter on motion capture, pre-train one on 2D poses, or train a forecaster or a sensor
network.

The data sets are those of `pose_datasets.catalogue`.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pose_datasets.catalogue import training_data

from pose.errors import PoseError, UsageError
from pose.utils.options import REQUIRED, Options, option, overwrite_option
from pose.utils.progress import progress_bar
from pose.utils.whole_file import whole_file
from pose.utils.written_files import writing
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import ConfigFile, add_options, config_of, named_subcommands
from pose_apps.support.status import StatusLine

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace
    from pose_datasets.forecasting import MotionSource

    from pose.lifting.forecast.network import ForecasterNetwork
    from pose.lifting.model import LifterNetwork
    from pose.lifting.sensor.network import SensorNetwork
    from pose.structures.sequences import LiftBatch
    from pose.training.forecaster import ForecasterTrainer
    from pose.training.loop import TrainingLoop
    from pose.training.objectives.pretraining import Pretrainer, Pretraining
    from pose.training.sensor import SensorTrainer
    from pose.training.trainer import Trainer

WEIGHTS = ("last.safetensors", "best.safetensors", "final.safetensors", "final.onnx")
FILES = ("config.yaml", "state.pt", "training.csv", "evaluation.csv", *WEIGHTS)  # files of a run, besides its images


class TrainingData(Protocol):
    """Protocol of a data set: training batches, and fixed batches for evaluation and calibration."""

    def batch(self, step: int) -> "LiftBatch":
        """Return the training batch of a step. Equal steps give equal batches."""
        ...

    def evaluation(self, part: str) -> "dict[str, Iterator[LiftBatch]]":
        """Return fixed batches of one part of the data, "validation" or "test", by source of the 2D joints."""
        ...

    def calibration(self) -> "list[Iterator[LiftBatch]]":
        """Return fixed batches for calibrating sigma, as one iterator per kind of input; none without held-out data."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions(Options):
    """Options of all subcommands of `pose-train`."""

    out: str = option(REQUIRED, "folder for checkpoints and logs", metavar="DIR")
    resume: bool = option(False, "continue the run in --out")
    overwrite: bool = overwrite_option("the run in --out")
    quiet: bool = option(False, "show no progress bar")


@dataclass(frozen=True, slots=True)
class Model:
    """A trainable model, with a subcommand of `pose-train`."""

    purpose: str  # short help text of the subcommand
    description: str  # long help text of the subcommand
    example: str  # example command for the help
    # Function that adds the options to a parser. If its second argument is True, it adds only the options that `--help`
    # shows, which is faster.
    add: Callable[["ArgumentParser", bool], None]
    check: "Callable[[Namespace], object]"  # function that builds the network, to find invalid options before training
    # Function that returns the trainer, and a function that reports the quality of the trained model.
    build: "Callable[[Namespace, Path], tuple[TrainingLoop[Any, Any, Any], Callable[[], None]]]"


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-train`."""
    words = sys.argv[1:] if argv is None else argv
    short = bool({"--help", "-h"} & set(words))
    parser, parsers = _parsers(named_subcommands(MODELS, argv), short)
    parsed = parse_arguments(parser, argv)
    model, options = MODELS[parsed.command], config_of(TrainOptions, parsed[parsed.command])
    with StatusLine("loading torch", hidden=options.quiet):
        recipe = _recipe(parser, parsed, model)
    out = Path(options.out)
    if (out / "state.pt").exists() and not (options.resume or options.overwrite):
        raise UsageError(f"{out}: already contains a training run; use --resume, --overwrite or another --out")
    with StatusLine("reading motion capture", hidden=options.quiet):
        trainer, report = model.build(recipe, out)
        if options.resume:
            trainer.resume()
    main_process = trainer.accelerator.is_main_process
    paths = [out / name for name in FILES]
    with writing(paths, rename=not options.resume) if main_process else nullcontext():
        with whole_file(out / "config.yaml") as hidden:
            parsers[parsed.command].save(parsed[parsed.command], hidden, skip_validation=True)
        _train(trainer, options.quiet)
        if main_process:
            report()
    return 0


def _recipe(parser: "ArgumentParser", parsed: "Namespace", model: Model) -> "Namespace":
    """Convert the parsed options of a model to their dataclasses."""
    try:
        import accelerate  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise PoseError('pose-train needs more packages: pip install "pose-run[train]"') from error
    try:
        recipe = parser.instantiate(parsed)[parsed.command]
        model.check(recipe)
    except ValueError as error:
        raise UsageError(str(error)) from error
    result: Namespace = recipe
    return result


def _parsers(named: Collection[str], short: bool = False) -> "tuple[ArgumentParser, dict[str, ArgumentParser]]":
    """Return the parser of `pose-train`, and those of its subcommands; only `named` ones get options, which is slow."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog="pose-train", description="Train a model.", exit_on_error=False)
    commands = parser.add_subcommands(required=True, dest="command")
    parsers = {
        name: _model_parser(model, short) if name in named else ArgumentParser(description=model.description)
        for name, model in MODELS.items()
    }
    for name, model in MODELS.items():
        commands.add_subcommand(name, parsers[name], help=model.purpose)
    return parser, parsers


def _model_parser(model: Model, short: bool = False) -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(description=model.description, exit_on_error=False)
    parser.add_argument("--config", action=ConfigFile, help=f"a recipe, such as {model.example}")
    add_options(parser, TrainOptions)
    model.add(parser, short)
    return parser


def _add_lifter(parser: "ArgumentParser", short: bool) -> None:
    if short:
        for key, data in training_data().items():
            parser.add_argument(f"--{key}.{data.files}", metavar=data.metavar, help=data.purpose)
        return
    from pose.training.config import TrainConfig

    for key, data in training_data().items():
        parser.add_class_arguments(data.config_class(), key)
    parser.add_class_arguments(TrainConfig, "train")


def _check_lifter(recipe: "Namespace") -> object:
    import pose.training.research  # noqa: F401
    from pose.lifting.model import LifterNetwork

    return LifterNetwork(recipe.train.model)


def _source(recipe: "Namespace") -> TrainingData:
    for key, data in training_data().items():
        if getattr(recipe[key], data.files):
            source: TrainingData = data.source_class()(recipe[key], recipe.train.seed)
            return source
    raise UsageError(
        "--data.mocap is missing: give the file that `pose-prepare mocap` wrote, or --human36m.folder for Human3.6M"
    )


def _build_lifter(recipe: "Namespace", out: Path) -> "tuple[Trainer, Callable[[], None]]":
    from pose.training.measure import lift_batch, measure
    from pose.training.trainer import Trainer
    from pose.view.gallery import draw_comparison, save_picture

    source = _source(recipe)

    def evaluate(network: "LifterNetwork", step: int) -> dict[str, float]:
        metrics = {name: measure(network, batches) for name, batches in source.evaluation("validation").items()}
        conditions = source.evaluation("validation")
        shown = next(conditions.get("detector") or next(iter(conditions.values())))
        lifted = lift_batch(network, shown).joints[:8, shown.joints.shape[1] // 2].numpy()
        picture = draw_comparison(lifted, shown.joints[:8, shown.joints.shape[1] // 2])
        path = out / "pictures" / f"{step:07d}.png"
        with writing([path]):
            save_picture(picture, path)
        return {f"{name}_{key}": value for name, metric in metrics.items() for key, value in asdict(metric).items()}

    trainer = Trainer(recipe.train, source, out, evaluate)
    return trainer, lambda: _report_lifter(trainer, source)


def _train(trainer: "TrainingLoop[Any, Any, Any]", quiet: bool) -> None:
    steps = trainer.run_config.steps
    with progress_bar("training", steps, " steps", done=trainer.step, hidden=quiet) as bar:

        def progress(step: int, metrics: dict[str, float]) -> None:
            values = (
                f"position {1000 * metrics['position']:.1f} mm" if "position" in metrics else f"{metrics['loss']:.3f}"
            )
            bar.set_postfix_str(f"{values}, rate {metrics['learning_rate']:.1e}")
            bar.update(step - bar.n)

        trainer.run(progress)


def _report_lifter(trainer: "Trainer", source: TrainingData) -> None:
    """Calibrate sigma on the validation subjects, save the model, and report the errors on them."""
    from pose.lifting.checkpoint import save_checkpoint
    from pose.training.measure import calibrate, measure

    network = trainer.final_network()
    held_out = source.calibration()
    if held_out:
        calibrate(network, held_out)
    else:
        print("sigma is not calibrated, because no subject is held out of the training")
    path = trainer.folder / "final.safetensors"
    save_checkpoint(network, path)
    for name, batches in source.evaluation("validation").items():
        print(f"{'validation' if held_out else 'training'} subjects, {name} 2D: {measure(network, batches)}")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _add_pretraining(parser: "ArgumentParser", short: bool) -> None:
    if short:
        parser.add_argument("--data.mocap", metavar="FILE", help=training_data()["data"].purpose)
        return
    from pose.training.config import PretrainConfig

    parser.add_class_arguments(training_data()["data"].config_class(), "data")
    parser.add_class_arguments(PretrainConfig, "train")


def _check_pretraining(recipe: "Namespace") -> object:
    import pose.training.research  # noqa: F401
    from pose.lifting.model import LifterNetwork
    from pose.training.objectives.pretraining import Pretraining

    if not recipe.data.mocap:
        raise UsageError("--data.mocap is missing: give the file that `pose-prepare mocap` wrote")
    return Pretraining(LifterNetwork(recipe.train.model), recipe.train.objective)


def _build_pretraining(recipe: "Namespace", out: Path) -> "tuple[Pretrainer, Callable[[], None]]":
    from pose.lifting.checkpoint import save_checkpoint
    from pose.training.objectives.pretraining import Pretrainer, measure_objective

    source = training_data()["data"].source_class()(recipe.data, recipe.train.seed)

    def evaluate(network: "Pretraining", step: int) -> dict[str, float]:
        return measure_objective(network, source.evaluation("validation")["detector"])

    trainer = Pretrainer(recipe.train, source, out, evaluate)

    def report() -> None:
        network, path = trainer.averaged_network.eval(), out / "final.safetensors"
        save_checkpoint(network.lifter, path)
        found = measure_objective(network, source.evaluation("validation")["detector"])
        print(f"validation subjects: {found['nats']:.2f} nats per coordinate, error / spread {found['distance']:.3f}")
        print(f"simple baseline: error / spread {found['simple']:.3f}")
        print(f"{path}: continue with pose-train lifter --train.start_from {path}")

    return trainer, report


def _add_forecaster(parser: "ArgumentParser", short: bool) -> None:
    if short:
        parser.add_argument("--data.motions", metavar="FILE", help="motions, written by `pose-prepare forecast`")
        return
    from pose_datasets.forecasting import MotionConfig

    from pose.training.config import ForecasterTrainConfig

    parser.add_class_arguments(MotionConfig, "data")
    parser.add_class_arguments(ForecasterTrainConfig, "train")


def _check_forecaster(options: "Namespace") -> object:
    import pose.training.research  # noqa: F401
    from pose.lifting.forecast.build import build_network

    if not options.data.motions:
        raise UsageError("--data.motions is missing: give the file that `pose-prepare forecast` wrote")
    return build_network(options.train.model)


def _build_forecaster(options: "Namespace", out: Path) -> "tuple[ForecasterTrainer, Callable[[], None]]":
    from pose_datasets.forecasting import MotionSource

    from pose.lifting.forecast.config import HORIZONS
    from pose.training.forecaster import ForecasterTrainer, measure_forecaster

    source = MotionSource(options.data, options.train.seed)

    def evaluate(network: "ForecasterNetwork", step: int) -> dict[str, float]:
        found = {
            name: measure_forecaster(network, batches) for name, batches in source.evaluation("validation").items()
        }
        means = {f"{name}_mean": float(metrics["mpjpe"].mean()) for name, metrics in found.items()}
        return {"mean": sum(means.values()) / len(means)} | {
            f"{name}_{1000 * horizon:.0f}ms": float(mpjpe)
            for name, metrics in found.items()
            for horizon, mpjpe in zip(HORIZONS, metrics["mpjpe"], strict=True)
        }

    trainer = ForecasterTrainer(options.train, source, out, evaluate)
    return trainer, lambda: _report_forecaster(trainer, source)


def _report_forecaster(trainer: "ForecasterTrainer", source: "MotionSource") -> None:
    """Calibrate sigma on the validation subjects, save the model, and report the errors on them."""
    from pose.lifting.forecast.build import save_forecaster
    from pose.lifting.forecast.config import HORIZONS
    from pose.training.forecaster import calibrate_forecaster, measure_forecaster

    network = trainer.averaged_network.eval()
    calibrate_forecaster(network, source.calibration())
    path = trainer.folder / "final.safetensors"
    save_forecaster(network, path)
    moments = ", ".join(f"{1000 * horizon:.0f}" for horizon in HORIZONS)
    for name, batches in source.evaluation("validation").items():
        errors = ", ".join(f"{error:.1f}" for error in measure_forecaster(network, batches)["mpjpe"])
        print(f"validation subjects, from the {name}: MPJPE {errors} mm after {moments} ms")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _add_sensor(parser: "ArgumentParser", short: bool) -> None:
    if short:
        parser.add_argument("--data.mocap", metavar="FILE", help=training_data()["data"].purpose)
        parser.add_argument("--data.pairs", metavar="FILE", help="pairs, written by `pose-prepare ui-prmd-kinect`")
        return
    from pose_datasets.sensor_training import SensorDataConfig

    from pose.training.config import SensorTrainConfig

    parser.add_class_arguments(SensorDataConfig, "data")
    parser.add_class_arguments(SensorTrainConfig, "train")


def _check_sensor(options: "Namespace") -> object:
    import pose.training.research  # noqa: F401
    from pose.lifting.sensor.network import SensorNetwork

    if not options.data.mocap:
        raise UsageError("--data.mocap is missing: give the file that `pose-prepare mocap` wrote")
    return SensorNetwork(options.train.model)


def _build_sensor(options: "Namespace", out: Path) -> "tuple[SensorTrainer, Callable[[], None]]":
    from pose_datasets.sensor_training import SensorSource

    from pose.lifting.sensor.network import export_sensor
    from pose.networks.weights import sha256_of
    from pose.training.sensor import SensorTrainer, calibrate_sensor, measure_sensor

    source = SensorSource(options.data, options.train.seed)

    def evaluate(network: "SensorNetwork", step: int) -> dict[str, float]:
        found = {name: measure_sensor(network, batches) for name, batches in source.evaluation("validation").items()}
        return {f"{name}_{key}": value for name, errors in found.items() for key, value in errors._asdict().items()}

    trainer = SensorTrainer(options.train, source, source.mean_definition, out, evaluate)

    def report() -> None:
        """Calibrate sigma on the validation people, save the network, and report the errors on them."""
        network, path = trainer.averaged_network.eval(), out / "final.safetensors"
        if held_out := list(source.evaluation("validation").values()):
            calibrate_sensor(network, (batch for batches in held_out for batch in batches))
        trainer.write(network, path)
        export_sensor(network, path.with_suffix(".onnx"), sha256_of(path))
        for name, batches in source.evaluation("validation").items():
            print(f"validation people, {name}: {measure_sensor(network, batches)}")
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")

    return trainer, report


MODELS = {
    "lifter": Model(
        "train a lifter: 2D sequences to 3D",
        "Train a lifter on motion capture seen by virtual cameras.",
        "configs/train/offline.yaml",
        _add_lifter,
        _check_lifter,
        _build_lifter,
    ),
    "pretraining": Model(
        "pre-train a lifter on 2D poses",
        "Pre-train a lifter on 2D poses: masked poses, the next pose, or poses in any order.",
        "configs/train/pretraining.yaml",
        _add_pretraining,
        _check_pretraining,
        _build_pretraining,
    ),
    "forecaster": Model(
        "train a forecaster of short-term motion",
        "Train a forecaster on motion capture and the output of a lifter for it.",
        "configs/train/forecaster.yaml",
        _add_forecaster,
        _check_forecaster,
        _build_forecaster,
    ),
    "sensor": Model(
        "train a network that corrects skeletons of depth cameras",
        "Train a network on motion capture with the errors of depth cameras, and on recordings of a Kinect.",
        "configs/train/sensor.yaml",
        _add_sensor,
        _check_sensor,
        _build_sensor,
    ),
}
