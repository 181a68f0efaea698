"""Backends that evaluate a lifter's network on arrays: ONNX Runtime here, torch in `pose.lifting.torch_lifter`."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from pose.errors import PoseError
from pose.structures.types import Array
from pose.utils.shown import in_brief

Arrays = dict[str, Array]
_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


class StepBackend(Protocol):
    """Backend that evaluates one streaming step for any number of people."""

    def bind(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Return a function that runs on the current contents of arrays and may overwrite its last outputs."""
        ...


class OnnxGraph:
    """ONNX model in ONNX Runtime on one CPU thread, so that detector and estimator can use the other cores."""

    def __init__(self, path: Path) -> None:
        """Load a model file."""
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            raise PoseError(f"{path.name} needs ONNX Runtime: pip install onnxruntime") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's own exceptions share no public base class
            raise PoseError(f"{path}: not a readable ONNX model ({in_brief(error)})") from error
        self._value = onnxruntime.OrtValue.ortvalue_from_numpy  # shares the array's memory
        self._outputs = [node.name for node in self._session.get_outputs()]
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, inputs: Arrays) -> Arrays:
        """Run the model for input arrays by name; returns all outputs by name."""
        return dict(zip(self._outputs, self._session.run(self._outputs, inputs), strict=True))

    def filled_input(self, name: str, value: float) -> Array:
        """Return an input for one person filled with a constant; all its axes but that of people must be fixed."""
        node = next(node for node in self._session.get_inputs() if node.name == name)
        return np.full(node.shape[1:], value, _DTYPES[node.type])

    def bind(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Bind input arrays that are reused for every step, as `StepBackend.bind`."""
        binding = self._session.io_binding()
        given = {node.name: inputs[node.name] for node in self._session.get_inputs()}
        first = self._session.run(None, given)  # run once to get the shapes of the outputs
        outputs = {node.name: array for node, array in zip(self._session.get_outputs(), first, strict=True)}
        values = {name: self._value(array) for name, array in (given | outputs).items()}
        for name in given:
            binding.bind_ortvalue_input(name, values[name])
        for name in outputs:
            binding.bind_ortvalue_output(name, values[name])

        def run() -> Arrays:
            self._session.run_with_iobinding(binding)
            return outputs

        return run
