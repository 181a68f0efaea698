"""The scripts of the pages find the elements that they name."""

import re
from collections import Counter
from importlib.resources import files

import pytest

STATIC = files("pose.live.web") / "static"


def scripts_of(page: str) -> str:
    """The scripts of a page, with those that they import."""
    found, waiting = set(), set(re.findall(r'src="([\w./-]+\.js)"', page))
    while waiting:
        name = waiting.pop().rpartition("/")[2]
        found.add(name)
        imported = re.findall(r'from "\./([\w.-]+\.js)"', (STATIC / name).read_text(encoding="utf-8"))
        waiting |= set(imported) - found
    return "\n".join((STATIC / name).read_text(encoding="utf-8") for name in sorted(found))


@pytest.mark.parametrize("name", ["index.html", "report.html"])
def test_identities_on_a_page_are_unique(name):
    """With two elements of one name, the first hid the other: the status removed the choice of the camera."""
    identities = Counter(re.findall(r'\sid="([^"]+)"', (STATIC / name).read_text(encoding="utf-8")))
    assert len(identities) > 5
    assert [identity for identity, count in identities.items() if count > 1] == []


def test_scripts_of_the_live_page_name_elements_that_exist():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    identities = set(re.findall(r'\sid="([^"]+)"', page))
    named = set(re.findall(r'\b(?:element|put)\("([\w-]+)"', scripts_of(page)))
    assert len(named) > 20
    assert named - identities == set()
