"""`pose-train`: train a lifter from motion capture.

A new data set is its reader in `pose_datasets` and an entry in `DATA_SETS`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pose.errors import PoseError, UsageError
from pose.options import REQUIRED, Options, option
from pose.system.progress import progress_bar
from pose.system.whole_file import whole_file
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import ConfigFile, add_options, config_of
from pose_apps.support.status import Status

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

    from pose.lifter.model import LifterNetwork
    from pose.sequences import LiftBatch
    from pose.training.config import TrainConfig
    from pose.training.trainer import Trainer


class TrainingData(Protocol):
    """Training batches (a `pose.training.batches.BatchSource`), and fixed sets to measure and calibrate on."""

    def batch(self, step: int) -> "LiftBatch": ...

    def evaluation(self, part: str) -> "dict[str, Iterator[LiftBatch]]": ...

    def calibration(self) -> "list[Iterator[LiftBatch]]": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions(Options):
    """Where a training run is kept, and whether it goes on."""

    out: str = option(REQUIRED, "folder for checkpoints and logs", metavar="DIR")
    resume: bool = option(False, "go on where the run in --out was stopped")
    overwrite: bool = option(False, "replace the run in --out")
    quiet: bool = option(False, "no progress bar")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained, and on what. data: the configuration of each of `DATA_SETS`, of which one names its files."""

    train: "TrainConfig"
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DataSet:
    """What can be trained on.

    files: the field of its configuration that names its files, and chooses it. metavar, purpose: what help says of it.
    classes: of the configuration, and of what makes batches from one and a seed.
    """

    files: str
    metavar: str
    purpose: str
    classes: Callable[[], tuple[type, Callable[..., TrainingData]]]


def _human36m() -> tuple[type, Callable[..., TrainingData]]:
    from pose_datasets.human36m_training import Human36mConfig, Human36mSource

    return Human36mConfig, Human36mSource


def _mocap() -> tuple[type, Callable[..., TrainingData]]:
    from pose_datasets.training import MocapConfig, MocapSource

    return MocapConfig, MocapSource


DATA_SETS = {  # the first whose files are named is trained on
    "human36m": DataSet("folder", "DIR", "Human3.6M instead, as docs/data.md prepares it", _human36m),
    "data": DataSet("mocap", "FILE", "motion capture, as `pose-prepare mocap` writes it", _mocap),
}


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-train`."""
    words = sys.argv[1:] if argv is None else argv
    short = bool({"--help", "-h"} & set(words))
    parser = _parser(short)
    parsed = parse_arguments(parser, argv)
    options = config_of(TrainOptions, parsed.lifter)
    with Status("loading torch", hidden=options.quiet):
        recipe = _recipe(parser, parsed)
    out = Path(options.out)
    if (out / "state.pt").exists() and not (options.resume or options.overwrite):
        raise UsageError(f"{out}: holds a training run already; use --resume, --overwrite or another --out")
    with Status("reading motion capture", hidden=options.quiet):
        trainer, source = _build(recipe, out)
        if options.resume:
            trainer.resume()
    with whole_file(out / "config.yaml") as hidden:
        _lifter_parser().save(parsed.lifter, hidden, skip_validation=True)
    _train(trainer, options.quiet)
    if trainer.accelerator.is_main_process:
        _report(trainer, source)
    return 0


def _recipe(parser: "ArgumentParser", parsed: "Namespace") -> Recipe:
    """The dataclasses of the parsed options. Raises UsageError for what cannot be, or cannot be together."""
    try:
        import accelerate  # noqa: F401

        from pose.lifter.model import LifterNetwork
    except ImportError as error:
        raise PoseError('pose-train needs more packages: pip install "pose-run[train]"') from error
    try:
        made = parser.instantiate(parsed).lifter
        LifterNetwork(made.train.model)  # some options only the parts of the network can judge
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Recipe(made.train, {key: made[key] for key in DATA_SETS})


def _parser(short: bool = False) -> "ArgumentParser":
    """short: with what `--help` shows alone, which is there sooner."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog="pose-train", description="Train a model.", exit_on_error=False)
    commands = parser.add_subcommands(required=True, dest="command")
    commands.add_subcommand("lifter", _lifter_parser(short), help="2D sequences to 3D")
    return parser


def _lifter_parser(short: bool = False) -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    lifter = ArgumentParser(
        description="Train a lifter on motion capture seen by virtual cameras.", exit_on_error=False
    )
    lifter.add_argument("--config", action=ConfigFile, help="a recipe, such as configs/train/offline.yaml")
    add_options(lifter, TrainOptions)
    if short:
        for key, data in DATA_SETS.items():
            lifter.add_argument(f"--{key}.{data.files}", metavar=data.metavar, help=data.purpose)
        return lifter
    from pose.training.config import TrainConfig

    for key, data in DATA_SETS.items():
        lifter.add_class_arguments(data.classes()[0], key)
    lifter.add_class_arguments(TrainConfig, "train")
    return lifter


def _source(recipe: Recipe) -> TrainingData:
    for key, data in DATA_SETS.items():
        if getattr(recipe.data[key], data.files):
            return data.classes()[1](recipe.data[key], recipe.train.seed)
    raise UsageError(
        "--data.mocap is missing: name the file that `pose-prepare mocap` wrote, or --human36m.folder for Human3.6M"
    )


def _build(recipe: Recipe, out: Path) -> tuple["Trainer", TrainingData]:
    from pose.training.measure import lift_batch, measure
    from pose.training.trainer import Trainer
    from pose.view.comparison import draw_comparison, save_picture

    source = _source(recipe)

    def evaluate(network: "LifterNetwork", step: int) -> dict[str, float]:
        figures = {name: measure(network, batches) for name, batches in source.evaluation("validation").items()}
        conditions = source.evaluation("validation")
        shown = next(conditions.get("detector") or next(iter(conditions.values())))
        lifted = lift_batch(network, shown).joints[:8, shown.joints.shape[1] // 2].numpy()
        picture = draw_comparison(lifted, shown.joints[:8, shown.joints.shape[1] // 2])
        save_picture(picture, out / "pictures" / f"{step:07d}.png")
        return {f"{name}_{key}": value for name, part in figures.items() for key, value in asdict(part).items()}

    return Trainer(recipe.train, source, out, evaluate), source


def _train(trainer: "Trainer", quiet: bool) -> None:
    steps = trainer.config.steps
    with progress_bar("training", steps, " steps", done=trainer.step, hidden=quiet) as bar:

        def progress(step: int, figures: dict[str, float]) -> None:
            bar.set_postfix_str(f"position {1000 * figures['position']:.1f} mm, rate {figures['learning_rate']:.1e}")
            bar.update(step - bar.n)

        trainer.run(progress)


def _report(trainer: "Trainer", source: TrainingData) -> None:
    """Calibrate sigma on the validation subjects, save, and say how well the model does on the test subjects."""
    from pose.lifter.checkpoint import save_checkpoint
    from pose.training.measure import measure
    from pose.training.sigma import calibrate

    network = trainer.averaged_network.eval()
    calibrate(network, source.calibration())
    path = trainer.folder / "final.safetensors"
    save_checkpoint(network, path)
    for name, batches in source.evaluation("test").items():
        print(f"test subjects, {name} 2D: {measure(network, batches)}")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
