"""Names in docstrings exist: parameters in `Args:`, and names in backquotes."""

import ast
import re
from collections.abc import Iterator

from test_language import ROOT, SOURCES

Function = ast.FunctionDef | ast.AsyncFunctionDef
ARGS = re.compile(r"^Args:\n((?: {4}.*\n?|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}\*{0,2}(\w+(?:, \w+)*):", re.MULTILINE)
QUOTED = re.compile(r"(?<!`)`([a-z_]+)`(?!`)")
OTHER_PROGRAMS = {
    "add_subcommands",
    "call_soon_threadsafe",
    "memory_format",
    "nohup",
    "onnx",
    "sha256sum",
    "ultralytics",
    "with",
}
VALUES = {"auto", "csv", "trunk_lean"}  # of options and columns


def definitions(nodes: list[ast.AST]) -> set[str]:
    """Names of classes, functions and annotated fields."""
    found = {node.name for node in nodes if isinstance(node, ast.ClassDef | Function)}
    return found | {
        node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def words(nodes: list[ast.AST]) -> set[str]:
    """Attributes, parameters, imports and whole strings of a module; variables do not count."""
    found = set()
    for node in nodes:
        match node:
            case ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                found.add(name)
            case ast.Constant(value=str(name)):
                found.add(name)
    return found


def local_words(function: Function) -> set[str]:
    """Parameters and variables of a function."""
    return {
        name
        for node in ast.walk(function)
        for name in (getattr(node, "arg", None), getattr(node, "id", None))
        if name is not None
    }


def parameters(function: Function) -> set[str]:
    """Names of the parameters."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def unknown_names(nodes: list[ast.AST], known: set[str]) -> Iterator[str]:
    """Names in docstrings of functions that are neither parameters nor known."""
    known = known | words(nodes)
    for node in nodes:
        if isinstance(node, Function) and (doc := ast.get_docstring(node)):
            for section in ARGS.findall(doc):
                listed = {name for entry in ENTRY.findall(section) for name in entry.split(", ")}
                yield from (f"{node.name}: Args lists {name}" for name in sorted(listed - parameters(node)))
            quoted = set(QUOTED.findall(doc)) - known
            if quoted:
                yield from (f"{node.name}: `{name}` does not exist" for name in sorted(quoted - local_words(node)))


def test_names_in_docstrings_exist():
    files = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    modules = {path: list(ast.walk(ast.parse(path.read_text()))) for path in files}
    known = (OTHER_PROGRAMS | VALUES).union(*(definitions(nodes) for nodes in modules.values()))
    wrong = [
        f"{path.relative_to(ROOT)}: {name}" for path, nodes in modules.items() for name in unknown_names(nodes, known)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_check_finds_renamed_parameters():
    code = '''
def wait(seconds, max_items=3):
    """Wait up to `most` items, at most `seconds`, see `other`.

    Args:
        seconds: Duration.
        most: Maximum.
    """
'''
    wrong = list(unknown_names(list(ast.walk(ast.parse(code))), {"other"}))
    assert wrong == ["wait: Args lists most", "wait: `most` does not exist"]
