"""The commands of the benchmarks: `python -m benchmarks.GROUP COMMAND [options]`.

The module of a command has `add_options(parser)` and `main(given)`; its docstring is the help text.
"""

import ast
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from importlib import import_module
from pathlib import Path

from pose.errors import PoseError

SHARED = Path("../shared")
VIDEOS = SHARED / "videos"


def run(group: str, doc: str | None, *names: str, **modules: str) -> None:
    """Run the command of a group that the first word names, and exit; only its module is imported.

    names: of commands and their modules. modules: of further commands.
    """
    modules = {name: name.replace("-", "_") for name in names} | modules
    lines = [f"{name:16} {_summary(group, module)}" for name, module in modules.items()]
    program = f"python -m benchmarks.{group}"
    whole = _parser(program, "\n".join([str(doc), "", *lines]))
    whole.add_argument("command", choices=modules)
    command = whole.parse_args(sys.argv[1:2]).command
    module = import_module(f"benchmarks.{group}.{modules[command]}")
    parser = _parser(f"{program} {command}", module.__doc__)
    module.add_options(parser)
    try:
        sys.exit(module.main(parser.parse_args(sys.argv[2:], Namespace(command=command))) or 0)
    except PoseError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _parser(program: str, description: str | None) -> ArgumentParser:
    return ArgumentParser(prog=program, description=description, formatter_class=RawDescriptionHelpFormatter)


def _summary(group: str, module: str) -> str:
    """The first line of a module's docstring, without its import."""
    source = (Path(__file__).parents[1] / group / f"{module}.py").read_text(encoding="utf-8")
    return str(ast.get_docstring(ast.parse(source))).partition("\n")[0]
