"""Benchmarks use names that exist: type checks leave them out, and most of them run too long for the tests."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "pose": ".",
    "pose_apps": "apps",
    "pose_datasets": "datasets",
    "pose_detectors": "detectors",
    "benchmarks": ".",
}
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))


@cache
def names_of(module):
    """Names at the top level of a module of ours, such as pose.world.clean; None if there is no such module."""
    path = ROOT / FOLDERS[module.partition(".")[0]] / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return None
    names = {one.stem for one in path.glob("*")} if path.is_dir() else set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_names_of_the_package_in_benchmarks_exist(path):
    tree, modules = ast.parse(path.read_text()), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in FOLDERS:
            for one in node.names:
                known = names_of(node.module)
                assert known is not None
                assert one.name in known or "__getattr__" in known, f"{node.module}.{one.name}"
                if names_of(f"{node.module}.{one.name}") is not None:
                    modules[one.asname or one.name] = f"{node.module}.{one.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            assert node.attr in names_of(modules[node.value.id]), f"line {node.lineno}: {node.value.id}.{node.attr}"
