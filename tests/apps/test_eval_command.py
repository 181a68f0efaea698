"""`pose-eval` as a user meets it: tables, files, comparisons, and one clear line for every bad input."""

import json
import re

import numpy as np
import pytest
from benchmark_files import walker, write_mpi_inf_3dhp, write_protocol_m, write_protocol_v
from pose_apps.evaluate.candidates import short_names
from pose_apps.evaluate.command import main
from pose_datasets import human36m

TAKES = {"S9": {"Directions 1": 30, "Photo": 12}, "S11": {"Directions": 9, "Walking 1": 40}}
M_VIDEOS = [("S9", "Greeting", 1, 0, 300), ("S9", "Greeting", 2, 1, 250), ("S11", "Walking", 1, 2, 250)]


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    write_protocol_v(folder / "h36m", TAKES)
    write_protocol_m(folder / "h36m", M_VIDEOS)
    write_mpi_inf_3dhp(folder / "mpi", {"TS1": 40, "TS6": 25}, invalid=(3, 11))
    return folder


@pytest.fixture(scope="session")
def streaming_lifter(tmp_path_factory):
    import torch

    from pose.lifting.checkpoint import save_checkpoint
    from pose.lifting.config import LifterConfig
    from pose.lifting.model import LifterNetwork

    path = tmp_path_factory.mktemp("lifter") / "live.safetensors"
    torch.manual_seed(0)
    save_checkpoint(LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, streaming=True)), path)
    return path


@pytest.fixture
def real_plots() -> None:
    """Reports contain their plots."""


@pytest.fixture(autouse=True)
def fast_reports(request, monkeypatch):
    """Drawing takes three quarters of a command's time, so it is left out unless a test asks for `real_plots`."""
    if "real_plots" not in request.fixturenames:
        monkeypatch.setattr("pose.training.evaluation.report.figure", lambda draw, *size, **sizes: "<svg></svg>")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Calls the command in a folder of its own: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def results_in(folder):
    return json.loads((folder / "results.json").read_text())["results"]


def v(data, *more):
    return ("human36m", "--protocol", "V", "--data", data / "h36m", *more)


def shifted(data, path, millimetres, **changes):
    """Predictions that are right but for one joint in three, which are `millimetres` off; `changes` replace some."""
    arrays = {one.key: one.truth.copy() for one in human36m.load_sequences(data / "h36m", "gt")}
    for array in arrays.values():
        array[:, [1, 5, 9, 13]] += np.float32([0, 0, millimetres / 1000])
    np.savez(path, **{**arrays, **changes})
    return path


def test_protocol_v_evaluation_writes_consistent_results(run, data, tiny_lifter, tmp_path):
    status, out, err = run(*v(data, "--2d", "cpn", "--lifter", tiny_lifter))
    assert (status, err) == (0, "")
    folder = tmp_path / "pose-eval-human36m-V-cpn"
    assert sorted(path.name for path in folder.glob("[!.]*")) == ["predictions.npz", "report.html", "results.json"]
    result = results_in(folder)[0]
    assert list(result["variants"]) == ["no flip", "flip"]
    assert result["benchmark"]["protocol"] == "V"
    assert result["variants"]["flip"]["frames"] == 4 * (30 + 12 + 40)
    assert result["speed"]["lifter_frames"] == 2 * 4 * (30 + 12 + 40)
    assert set(result["variants"]["flip"]["cameras"]) == {"54138969", "55011271", "58860488", "60457274"}
    actions = result["variants"]["flip"]["actions"]
    assert set(actions) == {"Directions", "Photo", "Walking"}
    mean = np.mean([values["mpjpe"] for values in actions.values()])
    assert result["variants"]["flip"]["average"]["mpjpe"] == pytest.approx(mean)
    assert re.search(rf"tiny, flip .* {mean:.1f}\n", out)
    assert "MPJPE (mm): Human3.6M, protocol V, 2D: cpn" in out
    with np.load(folder / "predictions.npz") as predictions:
        assert len(predictions.files) == 12
        assert predictions["S9/Photo/55011271"].shape == (12, 17, 3)
        assert predictions["S9/Photo/55011271"].dtype == np.float32


@pytest.mark.parametrize("relative", [False, True])
def test_known_prediction_error_gives_the_expected_mpjpe(run, data, tmp_path, relative):
    path = shifted(data, tmp_path / "theirs.npz", 30)
    if relative:
        with np.load(path) as archive:
            arrays = {key: archive[key] - archive[key][:, :1] for key in archive.files}
        np.savez(path, **arrays)
    status, out, _ = run(*v(data, "--2d", "gt", "--predictions", path, "--out", "o"))
    average = results_in(tmp_path / "o")[0]["variants"]["as given"]["average"]
    assert status == 0
    assert average["mpjpe"] == pytest.approx(30 * 4 / 17, abs=1e-3)
    assert 0 < average["p_mpjpe"] < 30
    assert average["mpjve"] == pytest.approx(0, abs=1e-3)
    joints = results_in(tmp_path / "o")[0]["variants"]["as given"]["joints"]
    assert joints["right_hip"]["mpjpe"] == pytest.approx(30, abs=1e-3)
    assert joints["head"]["mpjpe"] == pytest.approx(0, abs=1e-3)
    assert "theirs, as given" in out


def test_pelvis_offset_of_predictions_counts_only_as_given(run, data, tmp_path):
    arrays = {
        one.key: one.truth - one.truth[:, :1] + np.float32([0, 0, 0.03])
        for one in human36m.load_sequences(data / "h36m", "gt")
    }
    np.savez(tmp_path / "theirs.npz", **arrays)
    command = v(data, "--2d", "gt", "--predictions", tmp_path / "theirs.npz", "--no-report")
    assert run(*command, "--out", "centred")[0] == 0
    status, out, _ = run(*command, "--root", "as-given", "--out", "given")
    assert status == 0
    centred, given = (
        results_in(tmp_path / name)[0]["variants"]["as given"]["average"] for name in ("centred", "given")
    )
    assert centred["mpjpe"] == pytest.approx(0, abs=1e-3)
    assert given["mpjpe"] == pytest.approx(30, abs=1e-3)
    assert "pelvis of predictions as given" in out


def test_absolute_predictions_are_refused_as_given(run, data, tmp_path):
    theirs = shifted(data, tmp_path / "theirs.npz", 17)
    status, _, err = run(*v(data, "--2d", "gt", "--predictions", theirs, "--root", "as-given"))
    assert status == 1
    assert "theirs: the predicted pelvis is" in err
    assert "--root centred" in err


def test_sliding_lifter_has_one_row_because_it_mirrors_itself(run, data, tmp_path):
    status, out, _ = run(*v(data, "--2d", "gt", "--lifter", "sliding", "--no-report", "--out", "o"))
    assert status == 0
    assert list(results_in(tmp_path / "o")[0]["variants"]) == ["flip"]
    assert "Lifters get undistorted 2D and the camera's intrinsics" in out


def test_candidates_are_compared_in_one_table(run, data, tiny_lifter, tmp_path):
    theirs = shifted(data, tmp_path / "theirs.npz", 17)
    status, out, _ = run(*v(data, "--lifter", tiny_lifter, "--compare", theirs, "--out", "o"))
    assert status == 0
    assert [result["name"] for result in results_in(tmp_path / "o")] == ["tiny", "theirs"]
    table = out.split("\n\n")[0].splitlines()
    assert [line.split("  ")[0] for line in table[3:]] == ["tiny, no flip", "tiny, flip", "theirs, as given"]
    assert table[-1].split()[-1] == "4.0"
    assert (tmp_path / "o" / "predictions-tiny.npz").exists()


def test_protocols_never_share_a_column(run, data, tiny_lifter, tmp_path):
    run(*v(data, "--lifter", tiny_lifter, "--out", "v", "--quiet", "--no-flip"))
    run(
        "human36m",
        "--protocol",
        "M",
        "--data",
        data / "h36m",
        "--lifter",
        tiny_lifter,
        "--out",
        "m",
        "--quiet",
        "--no-flip",
    )
    status, out, _ = run("compare", "v", "m/results.json", "--out", "both")
    assert status == 0
    titles = [block.splitlines() for block in out.split("\n\n") if block.startswith("MPJPE")]
    assert [re.search(r"protocol \w", lines[0])[0] for lines in titles] == ["protocol V", "protocol M"]
    assert [len(lines) for lines in titles] == [4, 4]
    page = (tmp_path / "both" / "report.html").read_text()
    assert page.count("<h2>Human3.6M, protocol V") == page.count("<h2>Human3.6M, protocol M") == 1


def test_protocol_m_counts_its_clips_only(run, data, tiny_lifter, tmp_path):
    status, out, _ = run("human36m", "--protocol", "M", "--data", data / "h36m", "--lifter", tiny_lifter, "--out", "o")
    result = results_in(tmp_path / "o")[0]
    assert status == 0
    assert result["variants"]["flip"]["frames"] == 2 * 243  # the third video is one of those left out
    assert set(result["variants"]["flip"]["actions"]) == {"Greeting", "Walking"}
    assert "protocol M, 2D: stacked hourglass" in out
    with np.load(tmp_path / "o" / "predictions.npz") as predictions:
        assert predictions["s_09_act_05_subact_01_ca_01"].shape == (300, 17, 3)


def test_predictions_of_another_protocol_are_rejected(run, data, tmp_path):
    theirs = shifted(data, tmp_path / "theirs.npz", 17)
    status, _, err = run("human36m", "--protocol", "M", "--data", data / "h36m", "--predictions", theirs)
    assert status == 1
    assert (
        "2 of 2 sequences are missing, first 's_09_act_05_subact_01_ca_01'; it contains S9/Directions 1/54138969,"
        in err
    )


def test_mpi_inf_3dhp_metrics_are_pooled_over_frames(run, data, tiny_lifter, tmp_path):
    status, out, _ = run("mpi-inf-3dhp", "--data", data / "mpi", "--lifter", tiny_lifter, "--out", "o")
    result = results_in(tmp_path / "o")[0]["variants"]["flip"]
    assert status == 0
    assert result["frames"] == 40 + 25 - 4
    assert result["actions"]["TS1"]["frames"] == 38
    pooled = (38 * result["actions"]["TS1"]["mpjpe"] + 23 * result["actions"]["TS6"]["mpjpe"]) / 61
    assert result["average"]["mpjpe"] == pytest.approx(pooled)
    assert "PCK@150 (%): MPI-INF-3DHP" in out
    assert "AUC (%): MPI-INF-3DHP" in out


def write_sequence(folder, frames=30, missing=(), **changes):
    """Keypoints of the walker as a COCO detector sees it, and its truth."""
    from pose.structures.skeletons import COCO17

    folder.mkdir(exist_ok=True)
    truth = walker(frames)[..., [0, 2, 1]] * [1, -1, 1] + [0, 1, 4]
    truth[list(missing)] = np.nan
    rng = np.random.default_rng(2)
    arrays = {
        "keypoints": rng.uniform(0, 480, (frames, len(COCO17), 2)),
        "scores": np.ones((frames, len(COCO17))),
        "timestamps": np.arange(frames) / 25,
        "image_size": np.array([640, 480]),
        "skeleton": np.array("coco17"),
    }
    np.savez(folder / "walk.npz", **arrays)
    np.savez(folder / "gt.npz", **{"joints3d": truth, "timestamps": arrays["timestamps"], **changes})
    return folder / "walk.npz", folder / "gt.npz"


def test_folders_of_sequences(run, tiny_lifter, tmp_path):
    for name in ("a", "b"):
        keypoints, gt = write_sequence(tmp_path / name)
        for kind, path in (("2d", keypoints), ("3d", gt)):
            (tmp_path / kind).mkdir(exist_ok=True)
            path.rename(tmp_path / kind / f"{name}.npz")
    status, *_ = run("sequence", "--keypoints", "2d", "--gt", "3d", "--lifter", tiny_lifter, "--out", "o", "--quiet")
    assert status == 0
    assert set(results_in(tmp_path / "o")[0]["variants"]["flip"]["actions"]) == {"a", "b"}


def test_lookahead_curve_reports_accuracy_and_latency(run, data, streaming_lifter, tmp_path):
    status, out, _ = run(*v(data, "--lifter", streaming_lifter, "--lookahead", "4,0", "--out", "o", "--no-flip"))
    curve = results_in(tmp_path / "o")[0]["lookahead"]
    assert status == 0
    assert [(point["lookahead"], point["latency_ms"]) for point in curve] == [(0, 0), (4, 80)]
    assert curve[0]["mpjpe"] == pytest.approx(results_in(tmp_path / "o")[0]["variants"]["no flip"]["average"]["mpjpe"])
    assert curve[1]["mpjpe"] != curve[0]["mpjpe"]
    assert "Accuracy against latency: live" in out
    assert "Accuracy against latency" in (tmp_path / "o" / "report.html").read_text()
    document = json.loads((tmp_path / "o" / "results.json").read_text())
    del document["results"][0]["lookahead"][0]["latency_ms"]
    (tmp_path / "o" / "results.json").write_text(json.dumps(document))
    assert "an entry of lookahead is incomplete" in run("compare", "o")[2]


def test_report_page_is_self_contained(run, data, tiny_lifter, tmp_path, real_plots):
    run(*v(data, "--lifter", tiny_lifter, "--out", "o", "--quiet"))
    page = (tmp_path / "o" / "report.html").read_text()
    assert page.count("<svg") == 4  # per action, per joint, over time, error against uncertainty
    assert not re.search(r"<(script|link|img|iframe)|@import|url\(['\"]?http|src=", page)
    for caption in ("Error by action", "Error by joint", "error over time", "within one sigma"):
        assert caption in page


def test_existing_results_are_kept_without_overwrite(run, data, tmp_path):
    theirs = shifted(data, tmp_path / "theirs.npz", 17)
    call = v(data, "--predictions", theirs, "--out", "o", "--quiet")
    assert run(*call)[0] == 0
    status, _, err = run(*call)
    assert status == 2
    assert "results.json exists; give --overwrite" in err
    assert run(*call, "--overwrite")[0] == 0


def wrong_predictions(change):
    def make(data, tmp_path):
        path = shifted(data, tmp_path / "bad.npz", 10)
        with np.load(path) as archive:
            arrays = dict(archive)
        change(arrays)
        np.savez(path, **arrays)
        return v(data, "--predictions", path)

    return make


KEY = "S9/Photo/54138969"


def replaced(make):
    return wrong_predictions(lambda arrays: arrays.update({KEY: make(arrays[KEY])}))


def with_nan(array):
    array[7, 3] = np.nan
    return array


def sequence_call(**changes):
    def make(data, tmp_path):
        keypoints, gt = write_sequence(tmp_path / "mine", **changes)
        return ("sequence", "--keypoints", keypoints, "--gt", gt)

    return make


BAD_INPUTS = {
    "no data": (lambda d, t: v(t / "nowhere"), 2, r"data_3d_h36m\.npz is missing: make it with: pose-prepare human36m"),
    "no 2D": (lambda d, t: v(d, "--2d", "hrnet"), 2, "--2d: 'hrnet' is unknown; known: gt, cpn"),
    "subject": (lambda d, t: v(d, "--subjects", "S9,S99"), 2, "--subjects: unknown 'S99'; known: S1, S5"),
    "action": (lambda d, t: v(d, "--actions", "Juggling"), 2, "--actions: unknown 'Juggling'; known: Directions"),
    "protocol": (lambda d, t: ("human36m", "--protocol", "X", "--data", d), 2, "protocol.*X"),
    "2D of M": (
        lambda d, t: ("human36m", "--protocol", "M", "--2d", "cpn", "--data", d / "h36m"),
        2,
        "--2d belongs to protocol V",
    ),
    "lifter": (lambda d, t: v(d, "--lifter", "better"), 2, "lifter: better is neither a file nor one of offline"),
    "predictions": (lambda d, t: v(d, "--predictions", t / "none.npz"), 2, r"none\.npz: no such file"),
    "key": (wrong_predictions(lambda a: a.pop(KEY)), 1, f"1 of 12 sequences are missing, first '{KEY}'"),
    "joints": (replaced(lambda x: x[:, :16]), 1, rf"{KEY}: expected \(12, 17, 3\).*, got \(12, 16, 3\)"),
    "length": (replaced(lambda x: x[1:]), 1, rf"{KEY}: expected \(12, 17, 3\).*, got \(11, 17, 3\)"),
    "nan": (replaced(with_nan), 1, f"{KEY}: NaN or infinity in frame 7"),
    "unit": (replaced(lambda x: (x - x[:, :1]) * 1000), 1, f"{KEY}: expected metres, .*millimetres"),
    "lookahead": (
        lambda d, t: v(d, "--lookahead", "0,x"),
        2,
        "--lookahead: expected numbers of frames, 0,4,13, got '0,x'",
    ),
    "truth joints": (sequence_call(joints3d=np.zeros((30, 16, 3))), 1, r"joints3d \(T, 17, 3\).*got \(30, 16, 3\)"),
    "truth length": (
        sequence_call(joints3d=walker(20), timestamps=np.arange(20)),
        1,
        r"walk\.npz has 30 frames of 2D, .*gt\.npz has 20 of 3D",
    ),
    "truth unit": (sequence_call(joints3d=1000 * walker(30)), 1, r"gt\.npz, joints3d: expected metres.*millimetres"),
    "truth times": (sequence_call(timestamps=np.arange(30) / 30), 1, "its timestamps differ from those of"),
    "compare": (lambda d, t: ("compare", t / "nothing"), 2, r"nothing: no such file; expected a results.json"),
    "no mpi": (lambda d, t: ("mpi-inf-3dhp", "--data", t), 2, r"annot_data\.mat is missing"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_invalid_input_gives_a_one_line_error(run, data, tmp_path, case):
    make, expected, message = BAD_INPUTS[case]
    status, out, err = run(*make(data, tmp_path), "--out", "o")
    assert status == expected
    assert re.search(message, err), err
    assert err.count("\n") == 1
    assert out == ""
    assert not (tmp_path / "o").exists()


def test_lookahead_needs_a_streaming_lifter(run, data, tiny_lifter):
    status, _, err = run(*v(data, "--lifter", tiny_lifter, "--lookahead", "0,4"))
    assert status == 2
    assert "--lookahead needs a streaming lifter" in err


def test_short_names_are_unique():
    assert short_names(["a/x.npz", "y.npz"]) == ["x", "y"]
    assert short_names(["runs/a/x.npz", "runs/b/x.npz"]) == ["a-x", "b-x"]
    assert short_names(["runs/x.npz", "runs/x.safetensors"]) == ["x.npz", "x.safetensors"]
