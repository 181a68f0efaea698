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
    "apps/pose_apps", "apps/pose_apps/batch", "apps/pose_apps/bench", "apps/pose_apps/cameras",
    "apps/pose_apps/evaluate", "apps/pose_apps/lab", "apps/pose_apps/support", "apps/pose_apps/webcam",
    "datasets/pose_datasets", "detectors/pose_detectors", "pose", "pose/analysis", "pose/lifting/attention",
    "pose/training/attention/distributions", "pose/results/cache", "pose/world/camera_motion",
    "pose/networks/estimators", "pose/training/evaluation",
    "pose/export", "pose/body/character", "pose/tracking/faces", "pose/results", "pose/lifting/fit",
    "pose/lifting/forecast", "pose/tracking/hands",
    "pose/training/laboratory", "pose/training/laboratory/studies", "pose/training/laboratory/tasks", "pose/lifting",
    "pose/live",
    "pose/multiview", "pose/networks", "pose/tracking", "pose/tracking/association", "pose/lifting/repair",
    "pose/utils",
    "pose/training", "pose/training/objectives", "pose/video", "pose/view", "pose/live/web", "pose/networks/weights",
    "pose/world",
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
    r"borne": "tolerated",
    r"whom": "that, for which people",
    r"can(?:not)? be had": "is (not) available",
    r"of (?:a|the) usual kind": "name the kinds",
    r"or the like": "name them",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"({term})" for term in TERMS) + r")\b", re.IGNORECASE)
# Names of files, commands, options, values and arguments are not prose.
CODE = re.compile(r"^ +\w+(?=: )|^```.*?^```|`[^`]*`|\]\([^)]*\)|https?:\S+", re.DOTALL | re.MULTILINE)

SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")
ENTRY = re.compile(r" {4}\*{0,2}\w[\w., ]*: (.*)$")  # of a docstring's section: name, colon, description
NO_NOUN = re.compile(r"(?:Of|As|By|For|From|With|Without|At|To|Its|Their|The same)\b|[a-z]")
CONDITION = re.compile(r"(?:If|For|With|As|See|After|The|Unless|On|In|That|Before|Without)\b")

NAMES = re.compile(r"\"[^\"]*\"|\{[^}]*\}|\w+(?=: )")  # values, properties and arguments in comments
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w\"'])//[^\n]*", re.DOTALL)  # of JavaScript and CSS

MOST_SENTENCE_WORDS = 32  # of guides, reference and studies; CONTRIBUTING.md asks for 25
SENTENCE_END = re.compile(r"(?<=[.!?])[)*_\"']*\s+(?=[A-Z0-9(*\"'\[<])")


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
    return name.endswith("Error") or name in {
        "warn", "warning", "info", "option", "same_option", "overwrite_option", "argument", "add_argument",
    }  # fmt: skip


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
    if not PATTERN.search(text):  # most files, which need not be parsed
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def wrong_entries(docstring: str) -> list[str]:
    """Arguments and attributes whose descriptions do not begin with a noun, and exceptions without a condition."""
    found, section = [], ""
    for line in docstring.splitlines():
        if heading := SECTION.match(line):
            section = heading[1]
        elif line and not line.startswith(" "):
            section = ""
        elif entry := ENTRY.match(line):
            described = section in {"Args", "Attributes"} and NO_NOUN.match(entry[1])
            if described or (section == "Raises" and not CONDITION.match(entry[1])):
                found.append(line.strip())
    return found


def paragraphs(page: str) -> Iterator[str]:
    """The prose of a Markdown page. Each list item is a paragraph of its own.

    Fenced and indented code, tables, headings, HTML lines and the first line of admonitions are left out.
    """
    lines: list[str] = []
    for line in [*re.sub(r"^ *```.*?^ *```", "", page, flags=re.DOTALL | re.MULTILINE).splitlines(), ""]:
        text = line.strip()
        is_prose = bool(text) and not text.startswith(("|", "#", "<", "!!!"))
        is_prose = is_prose and (bool(lines) or not line.startswith("    "))
        item = re.match(r"(?:[-*]|\d+\.) ", text)
        if lines and (item or not is_prose):
            yield " ".join(lines)
            lines = []
        if is_prose:
            lines.append(text[item.end() :] if item else text)


def long_sentences(page: str) -> list[str]:
    """The sentences of a page with more than `MOST_SENTENCE_WORDS` words, each with its number of words.

    A sentence ends at `.`, `!` or `?` before a space and a capital letter, a digit, inline code or an opening mark.
    Words are separated by spaces and have a letter or a digit. Inline code is one word; of a link its text counts.
    """
    found = []
    for paragraph in paragraphs(page):
        text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "CODE", paragraph))
        for sentence in SENTENCE_END.split(text):
            count = sum(re.search(r"\w", word) is not None for word in sentence.split())
            if count > MOST_SENTENCE_WORDS:
                found.append(f"{count} words: {sentence}")
    return found


def found_in(paths: list[Path], texts) -> dict[str, list[str]]:
    found = {
        path.relative_to(ROOT).as_posix(): [w for text in texts(path) for w in wrong_terms(text)] for path in paths
    }
    return {name: terms for name, terms in found.items() if terms}


def test_pages():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert found_in(pages, lambda page: [page.read_text(encoding="utf-8")]) == {}


def test_sentences_of_pages_are_short():
    parts = ("guides", "reference", "studies")
    pages = [page for part in parts for page in sorted((ROOT / "docs" / part).glob("*.md"))]
    found = {str(page.relative_to(ROOT)): long_sentences(page.read_text(encoding="utf-8")) for page in pages}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_the_check_finds_long_sentences_only():
    words = " ".join(["word"] * 16)
    assert long_sentences(f"{words}\n{words}.\n\n- {words}\n- {words}, {words} `a b c`.\n") == [
        f"33 words: {words}, {words} CODE."
    ]
    spared = [f"{words}. {words.capitalize()}.", f"| {words} {words} x |", f"# {words} {words} x"]
    spared += [f"```\n{words} {words} x\n```", f"    {words} {words} x", f"- {words}\n\n{words} x y"]
    for text in spared:
        assert long_sentences(text) == [], text


def test_help_and_messages():
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found_in(paths, messages) == {}


@pytest.mark.parametrize("package", FINISHED)
def test_docstrings_and_comments_of_finished_packages(package):
    assert found_in(sorted((ROOT / package).glob("*.py")), prose) == {}


def comments(path: Path) -> Iterator[str]:
    """The comments of a JavaScript or CSS file."""
    for comment in COMMENT.findall(path.read_text(encoding="utf-8")):
        yield NAMES.sub(" ", comment)


def test_comments_of_the_live_page():
    paths = [path for pattern in ("*.js", "*.css") for path in sorted((ROOT / "pose" / "live" / "web").rglob(pattern))]
    assert sum(1 for path in paths for _ in comments(path)) > 100
    assert found_in(paths, comments) == {}


def test_text_of_the_live_page_and_configurations():
    paths = sorted((ROOT / "pose" / "live" / "web").rglob("*.html")) + sorted((ROOT / "configs").rglob("*.yaml"))
    assert found_in(paths, lambda path: [re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8"))]) == {}


def test_entries_of_docstrings_begin_with_a_noun():
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [f"{path.name}: {entry}" for path in paths for text in docstrings(path) for entry in wrong_entries(text)]
    assert found == []


def test_the_check_finds_entries_without_a_noun():
    docstring = (
        "X.\n\nArgs:\n    a: Of the frames.\n    b: Frames.\n\nReturns:\n    Of them.\n\nRaises:\n    OSError: Disk."
    )
    assert wrong_entries(docstring) == ["a: Of the frames.", "OSError: Disk."]


@pytest.mark.parametrize("folder", ["benchmarks", "tests"])
def test_docstrings_comments_and_messages_beside_the_packages(folder):
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__)]  # has the terms
    assert found_in(paths, lambda path: [*prose(path), *messages(path)]) == {}


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


def test_names_of_tests_have_no_wrong_terms():
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        names = re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        found += [name for name in names if wrong_terms(name.replace("_", " "))]
    assert found == []


def test_file_names_of_tests_are_unique():
    """pytest imports test files by their base names."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
