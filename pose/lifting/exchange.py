"""Export of lifters to ONNX, `torch.export` and TorchScript.

An offline lifter is exported as a function of whole windows, and a streaming lifter as one step. The exporter loads the
new file again and compares its outputs with those of the network. Only then is the file renamed to its final path.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from pose.errors import PoseError
from pose.lifting.backends import Arrays, OnnxGraph, StepBackend
from pose.lifting.features import observe
from pose.lifting.format import (
    OUTPUT_NAMES,
    SLIDING_FORMAT,
    STEP_FORMAT,
    STEP_INPUT_NAMES,
    STREAM_STATE_NAMES,
    WINDOW_FORMAT,
    WINDOW_INPUT_NAMES,
)
from pose.lifting.model import LifterNetwork
from pose.lifting.sliding import SlidingStep
from pose.lifting.step import StreamStep
from pose.lifting.step_batch import CacheLayout, PeopleState, Step, StreamSettings
from pose.lifting.torch_lifter import TorchStep
from pose.structures.camera import intrinsics_from_fov
from pose.structures.types import F32
from pose.utils.whole_file import whole_file

Format = Literal["onnx", "torch-export", "torchscript"]
SUFFIXES: dict[Format, str] = {"onnx": ".onnx", "torch-export": ".pt2", "torchscript": ".ts"}
TOLERANCE = 1e-4  # largest difference of joints in m, and largest relative difference of root and sigma
OPSET = 20
_IMAGE = (1280, 720)


class WindowLift(nn.Module):
    """Exportable offline lifter: features, network and decoding, from 2D keypoints in px to 3D poses in m."""

    def __init__(self, network: LifterNetwork) -> None:
        super().__init__()
        self.network = network
        self.inputs = list(WINDOW_INPUT_NAMES)  # names of the arguments of `forward`, in order
        self.outputs = list(OUTPUT_NAMES)  # names of the results of `forward`, in order

    def forward(
        self,
        keypoints: Tensor,
        scores: Tensor,
        times: Tensor,
        intrinsics: Tensor,
        derived: Tensor,
        intrinsics_known: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Lift windows: keypoints (B, T, 17, 2) px to joints (B, T, 17, 3) m, root (B, T, 3) m, sigma (B, T, 17) mm."""
        lifted = self.network(observe(keypoints, scores, times, intrinsics, derived, intrinsics_known), times)
        return lifted.joints, lifted.root, lifted.sigma


Exported: TypeAlias = WindowLift | StreamStep | SlidingStep
_FORMATS = {WindowLift: WINDOW_FORMAT, StreamStep: STEP_FORMAT, SlidingStep: SLIDING_FORMAT}


def export_lifter(
    network: LifterNetwork, file_format: Format, path: Path, checkpoint_sha256: str = "", *, sliding: bool = False
) -> float:
    """Export a lifter: a streaming network as a step for one frame, an offline network as a function of a window.

    The sizes of batch, time and look-ahead stay dynamic. With `sliding`, an offline network becomes a stream
    (`pose.lifting.sliding`). Returns the largest difference between the outputs of file and network: that of joints in
    m, that of root and sigma relative to the network's output.

    Raises:
        PoseError: If the difference is above `TOLERANCE`, or a package is not installed.
    """
    kind = SlidingStep if sliding else StreamStep if network.config.streaming else WindowLift
    module: Exported = kind(network).eval().cpu()
    metadata = {
        "format": _FORMATS[kind],
        "config": json.dumps(network.config.to_dict()),
        "checkpoint_sha256": checkpoint_sha256,
    }
    if not isinstance(module, WindowLift):
        metadata["memory"] = _cache_layout_json(module.cache_layout)
    with whole_file(path) as hidden:
        with _quiet():
            _WRITERS[file_format](module, _example(module), hidden, metadata)
            loaded = _load(module, hidden, file_format)
        difference = _difference(module, loaded)
        if not difference <= TOLERANCE:
            raise PoseError(f"{path}: not written, its outputs differ from the network's by {difference:.1e}")
    return difference


def _cache_layout_json(cache_layout: CacheLayout) -> str:
    """Return the initial state tensors, `pinned` and `ages` of a `CacheLayout` as JSON, without shapes."""
    for name, row in cache_layout.empty.items():
        assert (row == row.flat[0]).all(), name
    fill = {name: row.flat[0].item() for name, row in cache_layout.empty.items()}
    return json.dumps(
        {"fill": fill, "pinned": cache_layout.pinned} | ({"ages": cache_layout.ages} if cache_layout.ages else {})
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Return a context manager that suppresses warnings and log messages of the exporters."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def export_function(
    module: nn.Module,
    expected: nn.Module,
    path: Path,
    metadata: dict[str, str],
    examples: Sequence[tuple[Tensor, ...]],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    shapes: tuple[object, ...],
    opset: int = OPSET,
) -> float:
    """Write a module as ONNX, and return the largest difference of its outputs from those of the module `expected`.

    The first of `examples` is traced, the others are compared; `shapes` are the dynamic axes as `torch.export` expects
    them. A difference above `TOLERANCE` (m) is a PoseError.
    """
    traced, *compared = examples
    with whole_file(path) as hidden:
        with _quiet():
            _write_graph(module, traced, hidden, metadata, inputs, outputs, shapes, opset)
        graph = OnnxGraph(hidden)
        difference = max(_function_difference(expected, graph, given, inputs, outputs) for given in compared)
        if not difference <= TOLERANCE:
            raise PoseError(f"{path}: not written, its outputs differ from the network's by {difference:.1e} m")
    return difference


def _function_difference(
    module: nn.Module, graph: OnnxGraph, given: tuple[Tensor, ...], inputs: Sequence[str], outputs: Sequence[str]
) -> float:
    with torch.inference_mode():
        expected = module(*given)
    found = graph.run({name: tensor.numpy() for name, tensor in zip(inputs, given, strict=True)})
    pairs = zip(outputs, expected, strict=True)
    return max(float(np.abs(np.asarray(found[name], np.float32) - tensor.numpy()).max()) for name, tensor in pairs)


def _write_onnx(module: Exported, example: Arrays, path: Path, metadata: dict[str, str]) -> None:
    shapes = _dynamic_shapes(module)
    _write_graph(
        module, _tensors(example), path, metadata, module.inputs, module.outputs, shapes, OPSET, _missing_operators
    )


def _write_graph(
    module: nn.Module,
    example: tuple[Tensor, ...],
    path: Path,
    metadata: dict[str, str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    shapes: tuple[object, ...],
    opset: int,
    translations: Callable[[], dict[Callable[..., object], Callable[..., object]]] | None = None,
) -> None:
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise PoseError('ONNX export needs more packages: pip install "pose-run[export]"') from error
    program = torch.onnx.export(
        module,
        example,
        dynamo=True,
        verbose=False,
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_shapes=shapes,
        opset_version=opset,
        custom_translation_table=None if translations is None else translations(),
    )
    assert program is not None
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # remove stack traces, which contain local paths
    program.model.metadata_props.update(metadata)
    program.save(str(path), external_data=False)


def _missing_operators() -> dict[Callable[..., object], Callable[..., object]]:
    """Return translations of operators that the exporter lacks: the cumulative maximum along the last axis."""
    from onnxscript import opset20
    from onnxscript.function_libs.torch_lib.tensor_typing import TReal

    op: Any = opset20  # onnxscript's type stubs reject constants, which become tensors

    def cummax(self: TReal, dim: int) -> tuple[TReal, TReal]:
        frame = op.Range(0, op.Squeeze(op.Shape(self, start=-1), [0]), 1)
        earlier = op.LessOrEqual(op.Unsqueeze(frame, [0]), op.Unsqueeze(frame, [1]))
        row = op.Unsqueeze(self, [-2])
        largest = op.ReduceMax(op.Where(earlier, row, op.Slice(row, [0], [1], [-1])), [-1], keepdims=0)
        return largest, largest  # the second result replaces the indices, which are not used

    return {torch.ops.aten.cummax.default: cummax}


def _write_torch_export(module: Exported, example: Arrays, path: Path, metadata: dict[str, str]) -> None:
    program = torch.export.export(module, _tensors(example), dynamic_shapes=_dynamic_shapes(module))
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files={"metadata.json": json.dumps(metadata)})


def _write_torchscript(module: Exported, example: Arrays, path: Path, metadata: dict[str, str]) -> None:
    traced = torch.jit.trace(module, _tensors(example), check_trace=False)
    torch.jit.save(traced, str(path), _extra_files={"metadata.json": json.dumps(metadata)})


_WRITERS = {"onnx": _write_onnx, "torch-export": _write_torch_export, "torchscript": _write_torchscript}


def _load(module: Exported, path: Path, file_format: Format) -> StepBackend:
    if file_format == "onnx":
        return OnnxGraph(path)
    if file_format == "torchscript":
        return TorchStep(torch.jit.load(str(path)), module.inputs, module.outputs)
    with path.open("rb") as file:
        return TorchStep(torch.export.load(file).module(), module.inputs, module.outputs)


def _tensors(arrays: Arrays) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array) for array in arrays.values())


def _dynamic_shapes(module: Exported) -> tuple[object, ...]:
    """Return the dynamic axes as torch.export expects them for a `forward` with variable arguments."""
    people = torch.export.Dim("people", min=1, max=4096)
    time = torch.export.Dim("time", min=1, max=4096)
    kept = torch.export.Dim("lookahead_and_1", min=1, max=4096)
    second = {} if isinstance(module, SlidingStep) else {"recent": kept, "recent_times": kept}
    if isinstance(module, WindowLift):
        second = dict.fromkeys(("keypoints", "scores", "times"), time)
    free = [{0: people} | ({1: second[name]} if name in second else {}) for name in module.inputs]
    if isinstance(module, WindowLift):
        return tuple(free)
    named = len(STEP_INPUT_NAMES) + len(STREAM_STATE_NAMES)
    return (*free[:named], tuple(free[named:]))


def _example(module: Exported) -> Arrays:
    """Return example inputs with sizes that torch.export does not specialise to constants."""
    if isinstance(module, WindowLift):
        return _motion(people=2, frames=20)
    step = Step(TorchStep(module, module.inputs, module.outputs), module.cache_layout)
    people = PeopleState(StreamSettings(step, module.cache_layout.supported_lookahead(3), {}), 2)
    seen = _motion(people=2, frames=1)
    seen = {name: seen[name][:, 0] for name in ("keypoints", "scores", "times")} | _camera(2)
    return dict(zip(STEP_INPUT_NAMES, seen.values(), strict=True)) | people.state


def _camera(people: int) -> Arrays:
    intrinsics = np.repeat(intrinsics_from_fov(_IMAGE)[None], people, axis=0)
    return {"intrinsics": intrinsics, "derived": np.arange(people) % 2 == 0, "intrinsics_known": np.full(people, False)}


def _motion(people: int, frames: int) -> Arrays:
    """Return synthetic 2D motion from 10,000 s on, in which some joints and one whole frame are not detected."""
    rng = np.random.default_rng(0)
    times = 10_000 + np.cumsum(rng.uniform(0.02, 0.06, (people, frames)), axis=1)
    phase = rng.uniform(0, 6, (people, 1, 17, 2))
    keypoints = np.array(_IMAGE) / 2 + 80 * phase + 20 * np.sin(3 * times[..., None, None] + phase)
    scores = rng.uniform(0.2, 1, (people, frames, 17)) * (rng.random((people, frames, 17)) > 0.1)
    scores[:, frames // 2] = 0
    moving = {"keypoints": keypoints.astype(np.float32), "scores": scores.astype(np.float32), "times": times}
    return moving | _camera(people)


def _difference(module: Exported, loaded: StepBackend) -> float:
    """Return the largest difference between module and file, for sizes other than the example's."""
    # A step runs on a sequence that is 10 frames longer than its window, but at most 100 frames.
    torch_step = TorchStep(module, module.inputs, module.outputs)
    if isinstance(module, WindowLift):
        motion = _motion(people=3, frames=50)
        return _largest(*(_float_outputs(backend.bind(motion)()) for backend in (loaded, torch_step)))
    people, slots = 3, module.window if isinstance(module, SlidingStep) else getattr(module.core, "slots", 0)
    motion = _motion(people, frames=min(slots, 90) + 10)
    camera = {name: array[0] for name, array in _camera(1).items()}
    steps = [Step(backend, module.cache_layout) for backend in (loaded, torch_step)]
    streams = [PeopleState(StreamSettings(step, 1, camera), people) for step in steps]
    times: list[float] = motion["times"][0].tolist()
    worst = 0.0
    for frame in range(len(times)):
        keypoints, scores = (np.asarray(motion[name][:, frame], np.float32) for name in ("keypoints", "scores"))
        got, expected = (stream.advance(keypoints, scores, times[frame]) for stream in streams)
        if frame:  # with look-ahead, the first frame has no output
            worst = max(worst, _largest(*(_parts(outputs) for outputs in (got, expected))))
    return worst


def _float_outputs(outputs: Arrays) -> dict[str, F32]:
    return {name: np.asarray(outputs[name], np.float32) for name in OUTPUT_NAMES}


def _parts(outputs: F32) -> dict[str, F32]:
    return {"joints": outputs[:, :51], "root": outputs[:, 51:54], "sigma": outputs[:, 54:]}


def _largest(got: Mapping[str, F32], expected: Mapping[str, F32]) -> float:
    relative = {"joints": 1.0, "root": np.abs(expected["root"]) + 1, "sigma": expected["sigma"]}
    return max(float((np.abs(got[name] - expected[name]) / relative[name]).max()) for name in OUTPUT_NAMES)
