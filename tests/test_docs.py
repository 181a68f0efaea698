"""What README, CONTRIBUTING and docs/ promise exists: links, files, commands, options, presets, imports."""

import ast
import contextlib
import functools
import importlib
import io
import re
import runpy
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
BENCHMARKS = sorted(path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py"))
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
COMMAND = re.compile(r"(?:^|(?<=[\s`(/]))pose-(?!datasets\b)(?!detectors\b)(?!apps\b)[a-z]+(?=$|[\s`.,:;)])")
OPTION = re.compile(r"(?<![\w-])--[a-zA-Z0-9][\w.-]*[a-zA-Z0-9]")
OURS = r"(?:pose|pose_detectors|pose_datasets|pose_apps|detectors|datasets|apps|tests|docs|configs|benchmarks)"
# Of other programs that the pages call.
FOREIGN_OPTIONS = {"--check", "--nproc-per-node", "--index-url", "--upgrade", "--help"}


def anchors(text):
    """The names that headings can be linked by."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def code(text):
    """Every command line and inline code of a page: fenced and indented blocks by line, and what is in backticks."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^ {4}(?! )(.*)$", rest, re.MULTILINE)
    inline = re.findall(r"`([^`]+)`", re.sub(r"^ {4}.*$", "", rest, flags=re.MULTILINE))
    lines = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
    return [part for line in (*lines, *indented, *inline) for part in re.split(r"&&|\s#\s", line)]


@functools.cache
def help_of(*words):
    """All that a command, or its subcommand, says of itself."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        call(*words)
    assert end.value.code == 0
    return said.getvalue()


def call(name, *words):
    """Run a command or a benchmark for its help text."""
    if name in BENCHMARKS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [name, *words, "--help"])
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    module, function = SCRIPTS[name].split(":")
    getattr(importlib.import_module(module), function)([*words, "--help-all"])


def options_of(*words):
    return set(OPTION.findall(help_of(*words)))


def subcommands(command):
    if command in BENCHMARKS:
        return re.search(r"\{(.*?)\}", help_of(command))[1].split(",")
    return re.findall(rf"^  {command} ([a-z][\w-]*)", help_of(command).partition("\ncommands\n")[2], re.MULTILINE)


@functools.cache
def all_options():
    """Every option of every command and of every benchmark."""
    known = set(FOREIGN_OPTIONS)
    for command in SCRIPTS:
        known |= options_of(command)
        for name in subcommands(command):
            known |= options_of(command, name)
    for path in (ROOT / "benchmarks").rglob("*.py"):
        known |= set(OPTION.findall(path.read_text(encoding="utf-8")))
    return known


def wrong_in(line):
    """What a line of code names that is not there: commands, subcommands, options, modules, scripts."""
    match = COMMAND.search(line) or re.search(r"\bbenchmarks\.([a-z]\w*)", line)
    if match is None:
        return []
    command = match[match.lastindex or 0]
    if command not in (*SCRIPTS, *BENCHMARKS):
        return [f"no command {command}"]
    words = [command]
    following = line[match.end() :].strip('`")').split()
    if subcommands(command) and following and re.fullmatch(r"[a-z][\w-]+", following[0]):
        if following[0] not in subcommands(command):
            return [f"{command} has no subcommand {following[0]}"]
        words.append(following[0])
    known = options_of(*words) if len(words) > 1 or not subcommands(command) else all_options()
    used = OPTION.findall(line[match.end() :])
    return [
        f"{' '.join(words)} has no {option}" for option in used if option not in known | {"--print_config", "--plugin"}
    ]


@pytest.mark.parametrize("name", PAGES)
def test_links_in_pages_resolve(name):
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", PAGES[name]):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_files_named_in_pages_exist(name):
    named = re.findall(rf"(?<!--out )(?<!--json )(?<![\w./-]){OURS}/[\w./-]*\w", "\n".join(code(PAGES[name])))
    missing = {path for path in named if "." in Path(path).name and "NAME" not in path and not (ROOT / path).exists()}
    assert missing == set()


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_options_in_pages_exist(name):
    assert [wrong for line in code(PAGES[name]) for wrong in wrong_in(line)] == []


def test_each_benchmark_is_named_on_the_page_of_its_figures():
    pages = "\n".join(PAGES.values())
    commands = [f"benchmarks.{group} {command}" for group in BENCHMARKS for command in subcommands(group)]
    assert [command for command in commands if command not in pages] == []


@pytest.mark.parametrize("name", PAGES)
def test_options_mentioned_exist(name):
    mentioned = [line for line in code(PAGES[name]) if line.startswith("--")]
    missing = {option for line in mentioned for option in OPTION.findall(line)} - all_options()
    assert missing == set()


@pytest.mark.parametrize("name", PAGES)
def test_python_examples_import_existing_names(name):
    missing = []
    for block in re.findall(r"^```python\n(.*?)^```", PAGES[name], re.DOTALL | re.MULTILINE):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and re.match(OURS, node.module or ""):
                module = importlib.import_module(str(node.module))
                missing += [f"{node.module}.{one.name}" for one in node.names if not hasattr(module, one.name)]
    assert missing == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("pose-fly --far", "no command pose-fly"),
        ("pose-eval moon --data D", "pose-eval has no subcommand moon"),
        (".venv/bin/pose-run --video a.mp4 --colour red", "pose-run has no --colour"),
        ("pose-eval human36m --fps 3", "pose-eval human36m has no --fps"),
        ("python -m benchmarks.nothing", "no command nothing"),
        ("python -m benchmarks.speed nothing", "speed has no subcommand nothing"),
        ("python -m benchmarks.speed memory --nothing", "speed memory has no --nothing"),
    ],
)
def test_page_check_finds_wrong_names(line, complaint):
    assert wrong_in(line) == [complaint]
