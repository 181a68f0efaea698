"""Names: a public class name is defined in one module only, and CI names tests that exist."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pose", "apps/pose_apps", "datasets/pose_datasets", "detectors/pose_detectors")

_SUBCOMMAND = "a subcommand, named as on the command line"
ALLOWED = {  # name -> why several modules may define it
    "Command": "base class of the subcommands of one command; no other module uses it",
    "List": _SUBCOMMAND,
    "Table": f"{_SUBCOMMAND} of pose-lab, next to the table of pose.training.evaluation",
}


def defined_twice(sources: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The public top-level classes that several modules define, from the name and the source of each module.

    Names that differ only in upper and lower case are the same name.
    """
    modules, spelled = defaultdict(list), {}
    for module, source in sources:
        for own in re.findall(r"^class ([^\W_]\w*)", source, re.MULTILINE):
            modules[spelled.setdefault(own.lower(), own)].append(module)
    return {name: where for name, where in modules.items() if len(where) > 1}


def test_public_class_names_are_unique():
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = defined_twice((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths)
    assert {name: where for name, where in found.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found), "remove exceptions that are not needed"


def test_ci_names_existing_tests():
    for script in (".ci/common.sh", ".ci/run", ".ci/nightly"):
        for words in re.findall(r"\btests/[\w/{},.]*\w", (ROOT / script).read_text(encoding="utf-8")):
            before, choices, after = re.fullmatch(r"([^{]*)(?:\{(.*)\})?(.*)", words).groups()
            for choice in (choices or "").split(","):
                assert (ROOT / f"{before}{choice}{after}").exists(), f"{script}: {words}"
