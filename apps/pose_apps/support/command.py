"""Common behaviour of all commands: one-line errors, exit statuses, and handling of Ctrl-C and closed pipes.

Exit status 0 is success, 1 a failure, 2 a usage error, 130 an interruption.
"""

import argparse
import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from pose.errors import PoseError, PoseWarning, UsageError
from pose.utils.presets import without_plugins
from pose.utils.shown import shown
from pose_apps.support.help import choices_of, give_help, subcommands_of, takes_text
from pose_apps.support.interrupts import signals_as_interrupt
from pose_apps.support.options import unknown

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

Main = Callable[[Sequence[str] | None], int | None]
INTERRUPTED = 130
# Module -> the extra that contains it, if the importing code gives no better message.
EXTRAS = {"torch": "torch", "safetensors": "torch", "accelerate": "train", "tensorboard": "train"}
MAX_MESSAGE_CHARACTERS = 4000  # lists of known values can be long
# Another package may have overwritten cv2 with a variant that needs desktop libraries (see pyproject.toml).
HEADLESS_CV2 = "if it is cv2's: python -m pip install --force-reinstall --no-deps opencv-python-headless"
# What libraries say if the address space or the number of threads is limited.
NO_MEMORY = (
    "failed to map segment",
    "annot allocate memory",
    "can't start new thread",
    "bad_alloc",
    "Failed to allocate",
)
NOT_ENOUGH = "not enough memory or address space (see `ulimit -v`)"
_default_warning = warnings.formatwarning
# Fields of the command's options -> options as typed, for errors. Set by `parse_arguments`.
_typed: ContextVar[Mapping[str, str]] = ContextVar("_typed", default=MappingProxyType({}))
CLOSED_PIPE = 141  # exit status that shells report after SIGPIPE


def run_command(function: Main) -> Callable[..., int]:
    """Decorate `main(argv=None)` to return an exit status and to print errors as one line."""
    # Errors other than `PoseError`, `OSError` and option errors are bugs. They are shown with their traceback.

    @functools.wraps(function)
    def command(argv: Sequence[str] | None = None) -> int:
        warnings.formatwarning = _warning_line
        _typed.set({})
        try:
            words = sys.argv[1:] if argv is None else argv
            if any(word == "--plugin" or word.startswith("--plugin=") for word in words):
                words = without_plugins(words)
                if argv is None:
                    sys.argv[1:] = words
                else:
                    argv = words
            with signals_as_interrupt():  # so that temporary files are removed
                status = function(argv) or 0
            sys.stdout.flush()  # detects a closed pipe here, not at interpreter exit
            return status
        except PoseError as error:
            return _fail(_with_typed_option(str(error)), error.exit_code)
        except argparse.ArgumentError as error:
            return _fail(_rephrase_error(error), UsageError.exit_code)
        except KeyboardInterrupt as interrupt:
            if argv is None:  # the process ends now; ignore further Ctrl-C
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            print(
                ": ".join(("interrupted", *filter(None, [shown(interrupt, MAX_MESSAGE_CHARACTERS)]))), file=sys.stderr
            )
            return INTERRUPTED
        except BrokenPipeError:
            # Python flushes again at exit; redirect the output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return CLOSED_PIPE
        except OSError as error:
            if error.strerror is None:
                raise
            return _fail(f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1)
        except ImportError as error:
            name = (error.name or "").partition(".")[0]
            if name in EXTRAS:
                trains = function.__module__.startswith(("pose_apps.train", "pose_apps.lab"))
                extra = "train" if trains and EXTRAS[name] == "torch" else EXTRAS[name]
                return _fail(f'this needs {name}: pip install "pose-run[{extra}]"', 1)
            if any(text in str(error) for text in NO_MEMORY):
                return _fail(f"{NOT_ENOUGH}: {error}", 1)
            if "cannot open shared object" not in str(error):
                raise
            return _fail(f"{error}; {HEADLESS_CV2}", 1)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and not any(text in str(error) for text in NO_MEMORY):
                raise
            return _fail(f"{NOT_ENOUGH}: {str(error) or 'out of memory'}", 1)

    return command


def _warning_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning: one line if it is for users, otherwise with its location in the code."""
    if issubclass(category, PoseWarning):
        return f"warning: {shown(message, MAX_MESSAGE_CHARACTERS)}\n"
    return _default_warning(message, category, filename, lineno, line)


def parse_arguments(parser: "ArgumentParser", argv: Sequence[str] | None) -> "Namespace":
    """Add --version and --print-completion to a parser (`exit_on_error=False`), and parse the arguments."""
    # A leading `~` in a value is expanded, because shells expand it only in separate words.
    release = f"{parser.prog} {version('pose-run')}"
    parser.add_argument("--version", action="version", version=release, help="print the version and exit")
    complete = "print a shell completion script and exit; see docs/reference/commands.md"
    parser.add_argument("--print-completion", action=PrintCompletion, help=complete)
    give_help(parser)
    arguments = sys.argv[1:] if argv is None else list(argv)
    options = sorted(set(_options(parser)))
    fields = {option.removeprefix("--").replace("-", "_"): option for option in options}
    _typed.set({field: option for field, option in fields.items() if field not in arguments})  # it may also be a file
    try:
        parsed = parser.parse_args(arguments)
    except argparse.ArgumentError as error:
        raise UsageError(_rephrase_error(error, arguments, options, list(subcommands_of(parser)))) from error
    for key, value in list(parsed.items()):
        parsed[key] = _from_home(value)
    return parsed


def _from_home(value: object) -> object:
    """Return the value with a leading `~` expanded."""
    if isinstance(value, list):
        return [_from_home(part) for part in value]
    return os.path.expanduser(value) if isinstance(value, str) and value.startswith("~") else value


def _with_typed_option(message: str) -> str:
    """Return an error message that begins with the option as typed in place of its field: `--max-people: ...`."""
    name, colon, rest = message.partition(":")
    return f"{_typed.get().get(name, name)}{colon}{rest}"


def _fail(message: str, status: int) -> int:
    print(f"error: {shown(message, MAX_MESSAGE_CHARACTERS)}", file=sys.stderr)
    return status


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.help != argparse.SUPPRESS:
            yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _options(subparser)


def _rephrase_error(
    error: argparse.ArgumentError,
    arguments: Sequence[str] = (),
    options: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> str:
    """Return a parser's error that names the option as typed, or suggests the most similar known word."""
    while isinstance(error.__cause__, argparse.ArgumentError):
        error = error.__cause__
    message = " ".join(error.message.split())
    if error.argument_name == "command" and arguments:
        return unknown(
            "command", next((word for word in arguments if not word.startswith("-")), arguments[0]), commands
        )
    if message.startswith('expected "command" to be one of'):
        return f"no command given; known: {', '.join(commands)}"
    if message.startswith("ignored explicit argument") and error.argument_name is not None:
        return f"{error.argument_name.replace('/', ' or ')}: takes no value"
    if error.argument_name is not None:
        return f"{error.argument_name}: {message}"
    for word in arguments:
        if options and word.startswith("--") and word.partition("=")[0] not in (*options, "--"):
            return unknown("option", word, options)
    return message


SHELLS = ("bash", "zsh", "fish")


class PrintCompletion(argparse.Action):
    """Parser action that prints the completion script and exits. Add it after all options and subcommands."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002
        super().__init__(option_strings, argparse.SUPPRESS, default=argparse.SUPPRESS, choices=SHELLS, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        import shtab

        for action in _actions(parser):
            choices = choices_of(action)
            if choices:
                action.choices = choices
            elif takes_text(action):
                is_folder = action.metavar == "DIR" or action.dest == "out"
                action.complete = shtab.DIRECTORY if is_folder else shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, str(values)))
        parser.exit()


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield all options of a parser and its subcommands, except `--print-completion` and the subcommand names."""
    for action in parser._actions:
        if action.nargs != 0 and not isinstance(action, PrintCompletion | argparse._SubParsersAction):
            yield action
    for subparser in subcommands_of(parser).values():
        yield from _actions(subparser)
