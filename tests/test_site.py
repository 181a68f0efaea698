"""The documentation site: pages stay short, and what is generated is up to date. `.ci/run` builds it with --strict."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
MOST_WORDS = 2000
MOST_WORDS_OF_STUDIES = 35000


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_is_short(page):
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_the_studies_are_short():
    pages = (DOCS / "studies").glob("*.md")
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MOST_WORDS_OF_STUDIES


def test_every_page_is_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/-]+\.md)$", navigation, re.MULTILINE))
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert named - {"reference/options.md"} == written


def test_architecture_diagram_is_up_to_date():
    spec = importlib.util.spec_from_file_location("architecture_diagram", DOCS / "architecture_diagram.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text(encoding="utf-8") == module.diagram()
