"""Results of `pose-eval` of which bytes and values are changed: printed and drawn, or refused in one line."""

import json

import numpy as np
import pytest
from evaluation_fakes import DepthLifter
from hypothesis import strategies as st
from mutations import damaged, one_line, other_value, quick_and_long, try_mutations
from pose_apps.evaluate.candidates import Output, finish
from test_lifting_and_scores import labelled

from pose.errors import PoseError
from pose.training.evaluation.lifting import evaluate_lifter
from pose.training.evaluation.results import Benchmark, curve_point, describe, load_results


@pytest.fixture(scope="module")
def document():
    sequences = [labelled(np.random.default_rng(0), f"S9/Walking/{take}", "Walking", str(take), 12) for take in (1, 2)]
    evaluation = evaluate_lifter(sequences, DepthLifter(np.zeros((17, 3))))
    benchmark = Benchmark("human36m", "v", "gt", "actions", ("Walking",), ("mpjpe",), "all")
    result = describe("ours", evaluation, benchmark, 50.0)
    result["lookahead"] = [curve_point(4, 50.0, evaluation, benchmark)]
    return {"format": "pose-eval", "version": 1, "results": [result]}


def make(folder, *, report: bool) -> None:
    finish(load_results(folder / "results.json"), Output(folder / "out", report, False))


def test_the_document_is_one(document, tmp_path, capsys):
    (tmp_path / "results.json").write_text(json.dumps(document))
    make(tmp_path, report=False)
    assert "Walk  Avg." in capsys.readouterr().out


@pytest.mark.parametrize("name", ["lookahead", "latency_ms", "accel"])
def test_points_of_look_ahead_are_complete(document, name, tmp_path):
    point = {key: value for key, value in document["results"][0]["lookahead"][0].items() if key != name}
    result = document["results"][0] | {"lookahead": [point]}
    (tmp_path / "results.json").write_text(json.dumps(document | {"results": [result]}))
    with pytest.raises(PoseError, match="an entry of lookahead is incomplete"):
        load_results(tmp_path)


@quick_and_long(20, 5000)
def test_mutated_evaluations(document, tmp_path, examples):
    path = tmp_path / "results.json"

    def check(data: st.DataObject) -> None:
        text = json.dumps(other_value(data, document)).encode()
        path.write_bytes(text if data.draw(st.booleans()) else damaged(data, text))
        try:
            make(tmp_path, report=examples > 1000 and data.draw(st.integers(0, 19)) == 0)
        except PoseError as error:
            one_line(error)

    try_mutations(check, examples)
