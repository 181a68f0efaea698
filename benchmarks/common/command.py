"""The commands of the benchmarks: `python -m benchmarks.GROUP COMMAND [options]`.

The module of a command has `add_options(parser)` and `main(given)`; its docstring is the help text.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from pose.errors import PoseError

SHARED = Path("../shared")
VIDEOS = SHARED / "videos"


def run(group: str, doc: str | None, modules: Mapping[str, str], words: Sequence[str] | None = None) -> None:
    """Run the command of a group that the first word names, and exit; only its module is imported."""
    words = sys.argv[1:] if words is None else words
    whole = ArgumentParser(
        prog=f"python -m benchmarks.{group}", description=doc, formatter_class=RawDescriptionHelpFormatter
    )
    whole.add_argument("command", choices=modules)
    command = whole.parse_args(words[:1]).command
    module = import_module(f"benchmarks.{modules[command]}")
    parser = ArgumentParser(
        prog=f"{whole.prog} {command}", description=module.__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    module.add_options(parser)
    try:
        sys.exit(module.main(parser.parse_args(words[1:], Namespace(command=command))) or 0)
    except PoseError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
