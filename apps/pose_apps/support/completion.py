"""`--print-completion SHELL`: shell completion of a command's options and values."""

import argparse
from collections.abc import Iterator, Sequence

from pose_apps.support.help import choices_of, subcommands_of, takes_text

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
