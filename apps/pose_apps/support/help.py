"""Help of the commands: `--help` shows an example and the common options in groups, `--help-all` shows all options.

For commands with many options, `LAYOUTS` defines the options in `--help` and their order. This module imports only the
parser, so that help works without optional dependencies.
"""

import argparse
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from pose_apps.support.options import Value, kinds_of

# Destinations of the options, by group.
Layout = Mapping[str, Sequence[str]]

_PEOPLE = ("max_people", "hands", "repair")
_NETWORKS = ("config", "detector", "estimator", "lifter")
_SPEED = ("device", "threads", "detect_every")
LAYOUTS: Mapping[str, Layout] = {
    "pose-run": {
        "input": ("clip", "demo", "start", "end", "intrinsics", "cameras"),
        "output": ("out", "formats", "overlay", "analyse", "overwrite", "quiet", "verbose"),
        "people": (*_PEOPLE, "height"),
        "networks": _NETWORKS,
        "speed": _SPEED,
    },
    "pose-batch": {
        "input": ("inputs", "start", "end", "shard"),
        "output": ("out", "formats", "overlay", "resume", "quiet"),
        "work": ("workers", "time_limit", "retries", "engine", "cache"),
        "people": _PEOPLE,
        "networks": _NETWORKS,
    },
    "pose-calibrate": {
        "input": ("videos", "cameras", "offsets"),
        "output": ("out", "overwrite", "quiet"),
        "scale": ("height", "distance"),
        "networks": _NETWORKS,
    },
    "pose-webcam": {
        "input": ("source", "demo", "loop", "mirror", "seconds"),
        "output": ("web", "headless", "port", "record", "out", "udp", "ws", "send"),
        "people": _PEOPLE[:1],
        "networks": _NETWORKS,
        "speed": (*_SPEED, "lookahead"),
    },
    "pose-eval video": {
        "input": ("video", "gt", "start", "end"),
        "output": ("out", "name", "report", "overwrite", "quiet"),
        "people": _PEOPLE,
        "networks": _NETWORKS[1:],
        "speed": _SPEED,
    },
    "pose-train lifter": {
        "input": ("config", "data.mocap", "human36m.folder"),
        "output": ("out", "resume", "overwrite", "quiet"),
    },
    "pose-train pretraining": {
        "input": ("config", "data.mocap"),
        "output": ("out", "resume", "overwrite", "quiet"),
    },
}
EXAMPLES: Mapping[str, Sequence[str]] = {
    "pose-run": ("pose-run --demo", "pose-run clip.mp4", "pose-run clip.mp4 --max-people 2 --out result --overwrite"),
    "pose-batch": ("pose-batch clips --out results", "pose-batch 'day*/*.mp4' more.txt --out results --workers 4"),
    "pose-webcam": (
        "pose-webcam",
        "pose-webcam --web",
        "pose-webcam --source clip.mp4 --headless --report times.json",
    ),
    "pose-calibrate": (
        "pose-calibrate left.mp4 right.mp4 --height 1.82",
        "pose-calibrate recording --out cameras.json",
    ),
    "pose-studio": ("pose-studio", "pose-studio sessions"),
    "pose-lift": ("pose-lift keypoints.npz --out poses.npz",),
    "pose-view": ("pose-view clip/poses.npz", "pose-view clip/poses.npz --save turning.mp4"),
    "pose-analyse": ("pose-analyse result", "pose-analyse result/poses.npz --only gait,jumps"),
    "pose-convert": ("pose-convert clip/poses.npz --to bvh",),
    "pose-mcp": ("pose-mcp videos",),
    "pose-weights": ("pose-weights list", "pose-weights fetch --all-default"),
    "pose-bench": ("pose-bench lifter",),
    "pose-eval": ("pose-eval sequence --keypoints keypoints.npz --gt truth.npz",),
    "pose-eval video": ("pose-eval video --video clip.mp4 --gt truth.npz",),
    "pose-prepare": ("pose-prepare mocap --source recordings --out clips.npz",),
    "pose-train": ("pose-train lifter --config configs/train/offline.yaml --data.mocap clips.npz --out run",),
    "pose-train lifter": ("pose-train lifter --config configs/train/offline.yaml --data.mocap clips.npz --out run",),
    "pose-train pretraining": (
        "pose-train pretraining --config configs/train/pretraining.yaml --data.mocap clips.npz --out run",
    ),
    "pose-export": ("pose-export offline --format onnx --out lifter.onnx",),
    "pose-lab": ("pose-lab list", "pose-lab run score-widths", "pose-lab maps offline keypoints.npz"),
    "pose-setup": ("pose-setup mmpose",),
}
# Text for options that are on by default, phrased for the form that disables them.
TURNED_OFF = {
    "overlay": "draw no overlay video",
    "resume": "process every clip again, even those with results",
    "flip": "use no flip test-time augmentation",
    "report": "write no report.html",
    "repair": "keep left-right swaps and outliers of the 2D",
    "world": "write camera coordinates only",
    "trim": "keep first and last frames in which a person is only partly in the image, or the feet below the floor",
    "fill_gaps": "leave gaps of up to 0.5 s empty",
    "join_tracks": "keep broken tracks apart, and tracks that are rarely visible",
    "constant_bones": "let bone lengths vary over time",
    "foot_lock": "do not remove foot skating",
    "calibrate": "keep the recorded limb lengths; by default they make the limbs of standing people straight",
    "attention": "do not measure the attention mechanisms",
}
VALUES = {
    "video": "VIDEO", "out": "DIR", "start": "SECONDS", "end": "SECONDS", "seconds": "SECONDS",
    "detect_every": "SECONDS", "keep_hours": "HOURS", "formats": "NAMES", "intrinsics": "CAMERA",
    "config": "PRESET|FILE", "lifter": "NAME|FILE", "source": "SOURCE", "time_limit": "SECONDS",
    "shard": "I/N", "cache": "DIR|off", "cameras": "FILE", "distance": "CAM,CAM=METRES", "height": "METRES",
    "image_size": "WxH", "offsets": "SECONDS,...", "only": "NAMES", "udp": "HOST:PORT", "ws": "[HOST:]PORT",
    "pitch": "DEGREES", "roll": "DEGREES", "bridge": "SECONDS", "ahead": "auto|MS", "report": "FILE", "gt": "FILE",
    "detector_model": "FILE|NAME", "estimator_model": "FILE|NAME", "cert": "FILE", "key": "FILE", "keypoints": "FILE",
}  # fmt: skip
TYPED_COLUMNS = 25  # width of the column of options
NARROW, WIDE = 50, 100
MIN_FULL_COLUMNS = 72  # terminal width below which --help shortens each text to its first clause
# options that print and exit
ASIDES = frozenset({"--help", "--help-all", "--version", "--print_config", "--print-completion"})
# commands that build networks, and the option that `command.run_command` takes out of their arguments
PLUGIN_COMMANDS = ("pose-train", "pose-eval", "pose-export", "pose-run", "pose-batch", "pose-webcam", "pose-lift")
PLUGIN = ("--plugin FILE", "load own attention mechanisms from a Python file; docs/guides/train.md")
MAX_CHOICES = 6  # maximum choices in --help; --help-all lists all


def give_help(parser: argparse.ArgumentParser, name: str | None = None) -> None:
    """Replace `--help` of a parser and its subcommands, and add `--help-all`."""
    called = name or parser.prog
    for action in parser._actions:
        if "--print_config" in action.option_strings:
            action.metavar = "[=FLAGS]"  # without the backspace of jsonargparse
            action.help = "print the configuration as YAML and exit; skip_default leaves out default values"
    parser.add_argument("--help-all", action=_HelpAll, help="show every option and exit")
    parser.format_help = lambda: _text(parser, called, everything=False)  # type: ignore[method-assign]
    for word, subparser in subcommands_of(parser).items():
        give_help(subparser, f"{called} {word}")
    parser.format_everything = lambda: _text(parser, called, everything=True)  # type: ignore[attr-defined]


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        print(parser.format_everything(), end="")  # type: ignore[attr-defined]
        parser.exit()


def subcommands_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the subcommands by name, or an empty mapping without subcommands."""
    action = _subcommands(parser)
    return {} if action is None else action.choices


def _subcommands(
    parser: argparse.ArgumentParser,
) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _text(parser: argparse.ArgumentParser, name: str, *, everything: bool) -> str:
    width = min(max(shutil.get_terminal_size().columns, NARROW), WIDE)
    lines = textwrap.wrap(f"{name}: {parser.description or ''}".rstrip(": "), width, break_on_hyphens=False)
    lines += ["", *(f"  {example}" for example in EXAMPLES.get(name, ()))]
    for title, entries in _groups(parser, name, everything).items():
        if entries:
            lines += ["", title]
            for typed, text in entries:
                brief = width < MIN_FULL_COLUMNS and not everything
                lines += _entry(typed, text.partition(";")[0] if brief else text, width)
    if name in LAYOUTS and not everything:
        lines += ["", f"  {name} --help-all shows every option; README.md lists the documentation"]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _groups(parser: argparse.ArgumentParser, name: str, everything: bool) -> dict[str, list[tuple[str, str]]]:
    """Return pairs (form as typed, help text) of options by the title of their group in `LAYOUTS`."""
    asides = {"help": [_typed(a, True) for a in parser._actions if not ASIDES.isdisjoint(a.option_strings)]}
    subcommands = _subcommands(parser)
    if subcommands is not None:
        helps = {choice.dest: choice.help or "" for choice in subcommands._choices_actions}
        named = {"commands": [(f"{name} {word}", helps.get(word, "")) for word in subcommands.choices]}
        return named | asides if everything else named
    actions = {action.dest: action for action in parser._actions if action.help != argparse.SUPPRESS}
    shown = {
        title: [actions[dest] for dest in dests if dest in actions] for title, dests in LAYOUTS.get(name, {}).items()
    }
    placed = {action.dest for group in shown.values() for action in group}
    rest = [
        action for action in actions.values() if action.dest not in placed and ASIDES.isdisjoint(action.option_strings)
    ]
    rest.sort(key=lambda action: bool(action.option_strings))  # positional arguments first
    if everything or name not in LAYOUTS:
        shown["more" if shown else "options"] = rest
    typed = {title: [_typed(a, everything) for a in group] for title, group in shown.items()}
    command = name.split()[0]
    if command in PLUGIN_COMMANDS and (everything or command in ("pose-train", "pose-eval", "pose-export")):
        typed[next(iter(typed))].append(PLUGIN)
    return typed | asides if everything else typed


def _typed(action: argparse.Action, everything: bool) -> tuple[str, str]:
    """Return the form of an option as typed, and its help text; `everything` lists all allowed values."""
    text = " ".join((action.help or "").split())
    choices = choices_of(action)
    if not action.option_strings:
        return str(action.metavar or action.dest), text
    if type(action).__name__ == "ActionYesNo":
        on, off = action.option_strings[0], f"--no-{action.option_strings[0].removeprefix('--')}"
        if everything:
            return f"{on}, {off}", f"{text} (default: {'on' if action.default else 'off'})"
        if action.default is True:
            return off, TURNED_OFF.get(action.dest, f"do not {text}")
        return on, text
    word = action.option_strings[-1]
    if action.nargs == 0:
        return word, text
    if choices and (everything or len(choices) <= MAX_CHOICES):
        text = f"{text} ({', '.join(choices)})".strip()
    if _is_plain(action.default) and str(action.default) not in text:
        text += f" (default: {action.default})"
    return f"{word} {_value(action, choices)}", text


def _value(action: argparse.Action, choices: Sequence[str]) -> str:
    if isinstance(action.metavar, str) and not action.metavar.startswith("{"):
        return action.metavar
    if action.dest in VALUES:
        return VALUES[action.dest]
    kinds = _kinds(action)
    if int in kinds or float in kinds:
        return "N"
    return "NAME" if choices else action.dest.rpartition(".")[2].upper().replace("_", "-")


def choices_of(action: argparse.Action) -> list[str]:
    """Return the allowed values of an option; empty if it accepts other values."""
    return [str(choice) for choice in action.choices or [kind for kind in _kinds(action) if isinstance(kind, str)]]


def takes_text(action: argparse.Action) -> bool:
    """Return whether an option accepts arbitrary text, such as a file name."""
    kinds = _kinds(action)
    return action.nargs != 0 and type(action).__name__ != "ActionYesNo" and (str in kinds or kinds == [None])


def _kinds(action: argparse.Action) -> list[object]:
    """Return the types of an option's value, or its allowed values."""
    hint = getattr(action, "_typehint", None) or action.type
    return kinds_of(hint.kind if isinstance(hint, Value) else hint)


def _is_plain(default: object) -> bool:
    """Return whether the help shows a default value: a number or a word."""
    return isinstance(default, int | float | str) and not isinstance(default, bool) and str(default) not in (
        "", "inf", argparse.SUPPRESS,
    )  # fmt: skip


def _entry(typed: str, text: str, width: int) -> Iterator[str]:
    """Yield the lines of an option: its form, and its help to the right, or below if the form is long."""
    left = min(TYPED_COLUMNS, width // 2)
    wrapped = textwrap.wrap(text, width - left - 2, break_on_hyphens=False) or [""]
    if len(typed) >= left:
        yield f"  {typed}"
    else:
        yield f"  {typed:<{left}}{wrapped.pop(0)}".rstrip()
    yield from (f"{'':{left + 2}}{line}".rstrip() for line in wrapped)
