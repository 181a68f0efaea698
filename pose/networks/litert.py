"""LiteRT (TensorFlow Lite) networks with float or integer input, on the CPU with XNNPACK."""

import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.structures.types import Array
from pose.utils.native_stderr import silenced
from pose.utils.shown import in_brief

if TYPE_CHECKING:
    from ai_edge_litert.schema_py_generated import Model, SubGraph

# Fields of FlatBuffers tables in TensorFlow Lite's schema.fbs, as offsets in the table's vtable.
_GRAPH_OUTPUTS = 8
_GRAPH_OPERATORS = 10
_MODEL_SIGNATURES = 18


class LiteRTModel:
    """A LiteRT network with a fixed input shape."""

    def __init__(self, path: Path, threads: int, outputs: Sequence[int] | None = None) -> None:
        """Load a network with the operators of the required outputs only; PoseError if it is another file."""
        from ai_edge_litert.interpreter import Interpreter

        try:
            content = bytearray(path.read_bytes())
            if outputs is not None:
                keep_outputs(content, outputs)
            with silenced(sys.stderr, 2):  # LiteRT prints to stderr, but raises exceptions for all relevant problems
                self._interpreter = Interpreter(model_content=bytes(content), num_threads=threads)
                self._interpreter.allocate_tensors()
        except OSError as error:
            raise PoseError(f"{path}: {error.strerror}") from error
        except (ValueError, RuntimeError, struct.error, TypeError) as error:
            raise PoseError(f"{path}: not a readable LiteRT model ({in_brief(error)})") from error
        self._input: Callable[[], Array] = self._interpreter.tensor(self._interpreter.get_input_details()[0]["index"])
        self._outputs: list[Callable[[], Array]] = [
            self._interpreter.tensor(detail["index"]) for detail in self._interpreter.get_output_details()
        ]

    def input(self) -> Array:
        """Return the writable input tensor. Keep no reference to it during `run`."""
        return self._input()

    def run(self) -> list[Array]:
        """Run the network and return its outputs, which are valid until the next run."""
        self._interpreter.invoke()
        return [output() for output in self._outputs]


def keep_outputs(content: bytearray, outputs: Sequence[int]) -> None:
    """Keep only some outputs of a one-graph .tflite model, in place, and the operators that they need."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    tensors = [int(graph.Outputs(k)) for k in outputs]
    required, positions = set(tensors), []
    for row in reversed(range(graph.OperatorsLength())):  # operators are stored in execution order
        operator = graph.Operators(row)
        if required.intersection(operator.OutputsAsNumpy().tolist()):
            required.update(operator.InputsAsNumpy().tolist())
            positions.append(operator._tab.Pos)
    _write_vector(content, graph, _GRAPH_OUTPUTS, lambda _: tensors)
    positions.reverse()
    _write_vector(content, graph, _GRAPH_OPERATORS, lambda start: [p - start - 4 * i for i, p in enumerate(positions)])
    if model.SignatureDefsLength():  # signatures may name removed outputs
        _write_vector(content, model, _MODEL_SIGNATURES, lambda _: [])


def _write_vector(
    content: bytearray, table: "Model | SubGraph", entry: int, values: Callable[[int], list[int]]
) -> None:
    """Overwrite a FlatBuffers vector of 32-bit numbers with shorter content, given by its position in the file."""
    start = table._tab.Vector(table._tab.Offset(entry))
    numbers = values(start)
    struct.pack_into(f"<{1 + len(numbers)}i", content, start - 4, len(numbers), *numbers)


def sigmoid(x: NDArray[np.floating]) -> NDArray[np.float32]:
    """Compute the logistic function without overflow for any finite x."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -80, 80))), np.float32)
