"""Plain technical English: pages, help, messages, and the docstrings and comments of finished packages.

CONTRIBUTING.md lists the terms. A package joins `FINISHED` once its docstrings use them.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pose", "apps/pose_apps", "datasets/pose_datasets", "detectors/pose_detectors")
FINISHED = (
    "detectors/pose_detectors", "pose", "pose/attention", "pose/cache", "pose/estimators", "pose/evaluation",
    "pose/files", "pose/live", "pose/networks", "pose/people", "pose/people/association", "pose/repair",
    "pose/system", "pose/training", "pose/video", "pose/view", "pose/weights", "pose/web",
)  # fmt: skip
TERMS = {  # what not to write -> what to write
    r"exchang(?:e[sd]?|ing)": "left-right swap, swapped",
    r"hidden behind|who hides?": "occluded by",
    r"newcomers?": "new track, new person",
    r"strangers?": "unseen subjects",
    r"(?<!there )is no (?!longer|more|less|error\b)\w+": "is not a ..., invalid ...",
    r"haze": "uncertainty",
    r"(?:who|those) (?:is|are) followed": "tracked person",
    r"bones keep their length": "bone lengths are constant",
    r"by the book": "with the official protocol",
    r"as (?:it|they) should be": "valid",
    r"the house|house rules": "layers, conventions",
    r"(?:some|any|every)body|nobody|whoever": "a person, people, the user, no ...",
    r"how sure|surer|certainty": "confidence, uncertainty",
    r"let go of": "released, closed",
    r"anew": "again, restart",
    r"pictures?": "image, frame",
    r"trembles?": "jitter",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"({term})" for term in TERMS) + r")\b", re.IGNORECASE)
# Names of files, commands, options, values and arguments are not prose.
CODE = re.compile(r"^ +\w+(?=: )|^```.*?^```|`[^`]*`|\]\([^)]*\)|https?:\S+", re.DOTALL | re.MULTILINE)


def wrong_terms(text: str) -> list[str]:
    """The terms of `text` to be replaced, with their replacements."""
    found = PATTERN.finditer(CODE.sub(" ", text))
    return [f"{match[0]!r}: write {list(TERMS.values())[match.lastindex - 1]}" for match in found]


def texts_of(node: ast.AST) -> Iterator[str]:
    """The literal text in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def is_message(node: ast.AST) -> bool:
    """Whether a call has text for users: an exception, a warning, an option's help."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.endswith("Error") or name in {"warn", "warning", "info", "option", "argument", "add_argument"}


def messages(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if not PATTERN.search(source):  # most files, which need not be parsed
        return
    for node in ast.walk(ast.parse(source)):
        if is_message(node):
            for part in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from texts_of(part)


def prose(path: Path) -> Iterator[str]:
    """Docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def found_in(paths: list[Path], texts) -> dict[str, list[str]]:
    found = {
        path.relative_to(ROOT).as_posix(): [w for text in texts(path) for w in wrong_terms(text)] for path in paths
    }
    return {name: terms for name, terms in found.items() if terms}


def test_pages():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages = [page for page in pages if ROOT / "docs" / "studies" not in page.parents]
    assert found_in(pages, lambda page: [page.read_text(encoding="utf-8")]) == {}


def test_help_and_messages():
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found_in(paths, messages) == {}


@pytest.mark.parametrize("package", FINISHED)
def test_docstrings_and_comments_of_finished_packages(package):
    assert found_in(sorted((ROOT / package).glob("*.py")), prose) == {}


@pytest.mark.parametrize("package", FINISHED)
def test_public_objects_of_finished_packages_have_docstrings(package):
    """Methods that override one with a docstring may inherit it."""
    missing = []
    for path in sorted((ROOT / package).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for owner in (tree, *classes):
            inherits = isinstance(owner, ast.ClassDef) and bool(owner.bases)
            for node in (owner, *owner.body):
                is_object = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                name = getattr(node, "name", "module")
                if any(getattr(decorator, "attr", "") == "setter" for decorator in getattr(node, "decorator_list", ())):
                    continue
                if is_object and not name.startswith("_") and not ast.get_docstring(node) and not inherits:
                    missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []


def test_the_check_finds_terms_and_spares_code():
    assert wrong_terms("Pictures of `nobody` that nobody took anew.") == [
        "'Pictures': write image, frame",
        "'nobody': write a person, people, the user, no ...",
        "'anew': write again, restart",
    ]
    assert wrong_terms("there is no world, and no code in ```picture```") == []


def test_file_names_of_tests_are_unique():
    """pytest imports test files by their base names."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
