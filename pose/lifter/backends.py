"""What computes a `StreamStep`: torch, or ONNX Runtime from an exported file, which is several times faster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from pose.errors import PoseError

Arrays = dict[str, NDArray[Any]]


class StepBackend(Protocol):
    """Evaluates one step, for however many people."""

    def bind(self, inputs: Arrays) -> Callable[[], Arrays]:
        """A function that reads `inputs` (always these same arrays, whatever they then hold) and returns the outputs by
        name; its next call may overwrite them."""
        ...


class TorchStep:
    """A step in torch. function: takes the tensors called `inputs` and returns those called `outputs`, in order."""

    def __init__(
        self,
        function: Callable[..., tuple[Tensor, ...]],
        inputs: list[str],
        outputs: list[str],
        device: torch.device | str = "cpu",
    ) -> None:
        self._function, self._inputs, self._outputs, self._device = function, inputs, outputs, device

    def bind(self, inputs: Arrays) -> Callable[[], Arrays]:
        views = [torch.from_numpy(inputs[name]) for name in self._inputs]

        @torch.inference_mode()
        def run() -> Arrays:
            results = self._function(*(view.to(self._device) for view in views))
            return {name: result.cpu().numpy() for name, result in zip(self._outputs, results, strict=True)}

        return run


class OnnxStep:
    """A step in ONNX Runtime on one CPU thread, which leaves the other cores to the detector and the estimator.

    metadata: what the exporter wrote into the file.
    """

    def __init__(self, path: Path) -> None:
        """Raises PoseError when ONNX Runtime is not installed or the file cannot be read."""
        try:
            import onnxruntime
        except ImportError as error:
            raise PoseError(f"{path.name} needs ONNX Runtime: pip install onnxruntime") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's own exceptions share no public base class
            raise PoseError(f"{path}: not a readable ONNX model ({str(error).splitlines()[0]})") from error
        self._value = onnxruntime.OrtValue.ortvalue_from_numpy  # shares the array's memory
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def bind(self, inputs: Arrays) -> Callable[[], Arrays]:
        binding = self._session.io_binding()
        given = {node.name: inputs[node.name] for node in self._session.get_inputs()}
        first = self._session.run(None, given)  # its only use is to learn the shapes
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
