"""Plain technical English: pages, help, messages, docstrings and comments."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pose", "apps/pose_apps", "datasets/pose_datasets", "detectors/pose_detectors")
TERMS = re.compile(  # CONTRIBUTING.md asks for the words of PyTorch's and OpenCV's documentation instead
    r"\b(?:exchang(?:e[sd]?|ing)|hidden behind|who hides?|newcomers?|strangers?|haze|bones keep their length|"
    r"(?<!there )is no (?!longer|more|less|error\b)\w+|(?:who|those) (?:is|are) followed|as (?:it|they) should be|"
    r"the house|house rules|(?:some|any|every)body|nobody|whoever|how sure|surer|certainty|let go of|anew|pictures?|"
    r"by the book|trembles?|borne|can(?:not)? be had|of (?:a|the) usual kind|or the like)\b",
    re.IGNORECASE,
)
# Names of files, commands, options, values and arguments are not prose.
CODE = re.compile(r"^ +\w+(?=: )|^```.*?^```|`[^`]*`|\]\([^)]*\)|https?:\S+|<[^>]*>", re.DOTALL | re.MULTILINE)
MESSAGES = {"warn", "warning", "info", "option", "same_option", "overwrite_option", "argument", "add_argument"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def wrong_terms(text: str) -> list[str]:
    return [match[0] for match in TERMS.finditer(CODE.sub(" ", text))]


def prose(source: str) -> Iterator[str]:
    """Docstrings, comments, and the literal text that a Python file hands to exceptions, warnings and options."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.endswith("Error") or name in MESSAGES:
                yield from (
                    part.value
                    for part in ast.walk(node)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_pages_avoid_the_terms():
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "pose").rglob("*.html"),
    ]
    found = {page.name: wrong_terms(page.read_text(encoding="utf-8")) for page in pages}
    assert {name: terms for name, terms in found.items() if terms} == {}


def test_docstrings_comments_and_messages_avoid_the_terms():
    found = {}
    for path in (path for folder in (*SOURCES, "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if TERMS.search(source) and path != Path(__file__):  # most files need not be parsed
            found[str(path.relative_to(ROOT))] = [term for text in prose(source) for term in wrong_terms(text)]
    assert {name: terms for name, terms in found.items() if terms} == {}


def test_public_objects_have_docstrings():
    missing = []
    for path in (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        missing += [
            f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}"
            for node in (tree, *tree.body)
            if isinstance(node, DOCUMENTED)
            and not getattr(node, "name", "").startswith("_")
            and not ast.get_docstring(node)
        ]
    assert missing == []


def test_terms_in_code_are_not_found():
    assert wrong_terms("Pictures of `nobody` that nobody took anew.") == ["Pictures", "nobody", "anew"]
    assert wrong_terms("there is no world, and no code in ```picture```") == []


def test_names_of_test_files_are_unique():
    """pytest imports test files by their base names."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
