"""Eighteen common changes touch at most two files each.

docs/architecture.md names the files. The names, colours and messages of existing entries occur in no other source file.
A term of the loss, an experiment, a column of the results and a lens model are really added here.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import make_dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting.features import Lifted
from pose.multiview.calibration_files import read_camera, read_cameras
from pose.structures.colours import SIDE_COLOURS
from pose.structures.lenses import LENSES, FisheyeLens
from pose.training.config import LossWeights
from pose.training.laboratory.experiment import experiments
from pose.training.laboratory.kinds import KINDS, kind_of
from pose.training.losses import lifting_loss

ROOT = Path(__file__).resolve().parents[1]
PROBES = (
    "a detector", "a 2D estimator", "an attention mechanism", "a term of the training loss", "a learning rate schedule",
    "an export format", "a joint set", "a data set", "a metric", "a default or a threshold that can be set",
    "an option of a command", "a colour of body sides", "downloadable weights", "what a command prints", "a tracker",
    "an experiment", "a column of the results", "a lens model",
)  # fmt: skip


ENTRIES = {  # an existing entry for each table of names
    "a detector": "yolox",
    "a 2D estimator": "rtmpose-x-halpe26",
    "an attention mechanism": "transformer-xl",
    "a learning rate schedule": "inverse-sqrt",
    "an export format": "trc",
    "a joint set": "wholebody133",
    "a data set": "ui-prmd",
    "a metric": "n_mpjpe",
    "a default or a threshold that can be set": "detect_every",
    "an option of a command": "image_fps",
    "downloadable weights": "rtmpose-x-halpe26-384x288",
    "a tracker": "botsort",
    "a lens model": "fisheye",
}


@cache
def sources() -> dict[str, str]:
    folders = ("pose", "apps/pose_apps", "datasets/pose_datasets", "detectors/pose_detectors")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@cache
def tree(file: str) -> ast.Module:
    return ast.parse(sources()[file])


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def words_of(file: str) -> set[str]:
    """Strings and fields of a source file."""
    fields = (node.target for node in ast.walk(tree(file)) if isinstance(node, ast.AnnAssign))
    return {*strings(tree(file)), *(field.id for field in fields if isinstance(field, ast.Name))}


def files_with(text: str) -> list[str]:
    longest = max(re.findall(r"[\w.-]+", text), key=len, default="")  # most files need not be parsed
    return [file for file, code in sources().items() if longest in code and text in words_of(file)]


def rows() -> dict[str, tuple[str, str]]:
    """What is changed -> where, and what else."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Where would I change")[2]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {what: (where, also) for what, where, also in cells}


@pytest.mark.parametrize("probe", PROBES)
def test_a_change_touches_two_files_at_most(probe):
    """What follows a semicolon is needed in some cases only."""
    where, also = rows()[probe]
    files = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", f"{where} {also.partition(';')[0]}"))
    assert 1 <= len(files) <= 2
    for file in files:
        assert list(ROOT.glob(file.replace("NAME", "*"))), file


@pytest.mark.parametrize("probe", ENTRIES)
def test_the_name_of_an_entry_occurs_in_two_files_at_most(probe):
    files = files_with(ENTRIES[probe])
    assert 1 <= len(files) <= 2, files


def test_live_page_uses_the_side_colours():
    style = (ROOT / "pose" / "live" / "web" / "static" / "style.css").read_text(encoding="utf-8")
    for side in ("left", "right"):
        red, green, blue = SIDE_COLOURS[side]
        assert f"--side-{side}: rgb({red} {green} {blue});" in style


def test_side_colours_occur_in_two_files():
    files, colours = set(), set(SIDE_COLOURS.values())
    spelled = re.compile("|".join(r",\s*".join(map(str, colour)) for colour in colours))
    for file in (file for file, code in sources().items() if spelled.search(code)):
        tuples = (node for node in ast.walk(tree(file)) if isinstance(node, ast.Tuple))
        if any(tuple(getattr(part, "value", None) for part in node.elts) in colours for node in tuples):
            files.add(file)
    written = [form.format(*colour) for colour in colours for form in ("{} {} {}", "#{:02x}{:02x}{:02x}")]
    for path in (*(ROOT / "pose" / "live" / "web").rglob("*.js"), *(ROOT / "pose" / "live" / "web").rglob("*.css")):
        if any(text in path.read_text(encoding="utf-8").lower() for text in written):
            files.add(path.relative_to(ROOT).as_posix())
    assert files == {"pose/structures/colours.py", "pose/live/web/static/style.css"}


def test_printed_summary_is_defined_in_one_file():
    printed = {}
    for file in (file for file, code in sources().items() if file.startswith("apps/") and "print(" in code):
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                texts = [text for part in node.args for text in strings(part) if text.count(" ") > 2]
                printed |= {text: files_with(text) for text in texts}
    assert len(printed) > 20
    assert {text: files for text, files in printed.items() if len(files) > 1} == {}


def test_experiment_is_defined_in_one_file(tmp_path):
    name = "error-by-subject"
    assert files_with(name) == []
    (tmp_path / "new.yaml").write_bytes((ROOT / "configs" / "lab" / f"{name}.yaml").read_bytes())
    assert list(experiments(tmp_path)) == ["new"]
    assert kind_of(experiments(tmp_path)["new"]) in KINDS.values()


def test_a_term_of_the_training_loss_is_a_weight_and_a_line():
    """The loss with a further term, made by a field of LossWeights and a line of losses.py."""
    weights = make_dataclass("Weights", [("lateral", float, 0.5)], bases=(LossWeights,), frozen=True, kw_only=True)
    source, line = (ROOT / "pose" / "training" / "losses.py").read_text(encoding="utf-8"), "    parts = {\n"
    assert source.count(line) == 1
    term = '        "lateral": _mean((lifted.joints - joints)[..., 0].abs().mean(-1), frames),\n'
    changed = types.ModuleType("changed")
    exec(compile(source.replace(line, line + term), "losses.py", "exec"), changed.__dict__)

    random = torch.Generator().manual_seed(0)
    truth, root = torch.randn(1, 4, 17, 3, generator=random), torch.tensor([[[0.0, 0.0, 4.0]]]).expand(1, 4, 3)
    shifted = Lifted(truth + torch.tensor([0.25, 0, 0]), root, torch.full((1, 4, 17), 100.0))
    case = (shifted, truth, root, torch.arange(4)[None] / 30, torch.ones(1, 4, dtype=torch.bool))
    before, _ = lifting_loss(*case, LossWeights())
    after, parts = changed.lifting_loss(*case, weights())
    assert parts["lateral"].item() == pytest.approx(0.25, rel=1e-5)
    assert (after - before).item() == pytest.approx(0.5 * 0.25, rel=1e-4)


def test_no_other_source_file_names_the_terms_of_the_training_loss():
    """Other files read the terms from the dictionary that the loss returns."""
    terms = set(LossWeights.__dataclass_fields__) - {"ponder", "shape"}  # a lifter's own cost; arrays have a shape, too
    named = {}
    for file in (file for file, code in sources().items() if "weights." in code):
        for node in ast.walk(tree(file)) if file.startswith(("pose/training/", "apps/")) else ():
            if isinstance(node, ast.Attribute) and node.attr in terms and ast.unparse(node.value).endswith("weights"):
                named.setdefault(file, set()).add(node.attr)
    assert set(named) <= {"pose/training/forecaster.py"}, named  # its own ForecastLossWeights


RUN_WITH_A_COLUMN = """
import json, sys
from pathlib import Path
import numpy as np
from pose_fakes import run_info, seen_result
from pose.results import load_poses
from pose.results.recorded import RecordedRun, write_results
from pose.structures.skeletons import H36M17
from pose.world.clean import Steps
folder = Path(sys.argv[1])
with RecordedRun(run_info(H36M17)) as recorded:
    for index in range(60):
        recorded.add(seen_result(np.float32([[0.005 * index, 0, 4]]), index=index, time=index / 30))
    recorded.place(Steps())
    write_results(recorded.results, recorded.info, {name: folder / f"poses.{name}" for name in ("npz", "json")})
table = load_poses(folder / "poses.npz")
people = [person for frame in json.loads((folder / "poses.json").read_text())["frames"] for person in frame["people"]]
print(table.lean.tolist() == [10.5] * 60, table[5].placed.lean.tolist(), {person["lean"] for person in people})
"""


def test_a_column_of_the_results_is_a_declaration_and_its_computation(tmp_path):
    """A copy of the package in which two files declare and compute a further column, from the run to both files."""
    source = tmp_path / "source"
    for path in (ROOT / "pose").rglob("*.*"):
        if path.suffix in (".py", ".json"):
            target = source / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    declared = (
        '    lean: F32 = column("lean", part="world", optional=True, required=False, member="lean", decimals=1)\n'
    )
    changes = [
        ("pose/structures/types.py", "labels=tuple(LIMBS), sparse=True,\n    )  # fmt: skip\n", declared),
        ("pose/world/clean.py", "    foot_velocities: F64\n", "    lean: F64\n"),
        ("pose/world/clean.py", "work.inconsistent, footing,", " np.full(len(placed), 10.5),"),
    ]
    for file, line, added in changes:
        text = (source / file).read_text(encoding="utf-8")
        assert text.count(line) == 1, line
        (source / file).write_text(text.replace(line, line + added), encoding="utf-8")
    places = os.pathsep.join([str(source), str(ROOT / "tests")])
    ended = subprocess.run(
        [sys.executable, "-c", RUN_WITH_A_COLUMN, str(tmp_path)], env={**os.environ, "PYTHONPATH": places},
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "True [10.5] {10.5}"


def test_a_lens_model_is_a_class_and_a_line(tmp_path, monkeypatch):
    class Equidistant(FisheyeLens):
        name = "equidistant"

    monkeypatch.setitem(LENSES, "equidistant", Equidistant)
    values = {"size": [640, 480], "K": [[400, 0, 320], [0, 400, 240], [0, 0, 1]], "R": [0, 0, 0], "t": [0, 0, 0]}
    path = tmp_path / "cameras.json"
    path.write_text(json.dumps({"cameras": [values | {"name": name, "lens": "equidistant"} for name in "ab"]}))
    for camera in read_cameras(path, ["a", "b"], [(640, 480)] * 2):
        x, y = camera.project(np.array([1.0, 0.0, 1.0]))
        assert (x, y) == pytest.approx((320 + 400 * np.pi / 4, 240))
    path.write_text(json.dumps(values | {"lens": "equidistant"}))  # a single camera
    assert read_camera(path).project(np.array([1.0, 0.0, 1.0]))[0] == pytest.approx(320 + 400 * np.pi / 4)


def test_the_page_of_the_architecture_lists_all_packages_and_modules():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+(?:/|\.py))` \|", text.partition("## Data flow")[0], re.MULTILINE)
    packages = {f"{one.parent.name}/" for one in (ROOT / "pose").glob("*/__init__.py")}
    modules = {one.name for one in (ROOT / "pose").glob("*.py")}
    assert set(listed) == packages | modules
    assert (len(packages), len(modules)) == (15, 8)
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]
    assert len(contract["layers"]) == 11
