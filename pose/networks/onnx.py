"""Networks on ONNX Runtime. A device or precision that is not available is an error."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from pose.errors import PoseError, UsageError
from pose.networks.input import NetworkInput, Samples
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.types import Array
from pose.utils.device import Device, torch_has_cuda
from pose.utils.shown import in_brief

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MAX_INPUT_VALUES = 1 << 26  # maximum size of an input, over the axes that the file fixes: 0.25 GiB in float32
_DTYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}


class OnnxNetwork:
    """An ONNX network with one input."""

    def __init__(self, path: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network.

        Raises:
            PoseError: If ONNX Runtime is not installed, the file is not readable or has another precision, or CUDA was
                requested and is not available. ONNX Runtime alone would fall back to the CPU.
        """
        self._file = path.name
        self._session = open_session(path, options.device, options.threads)
        # 'cpu' or 'cuda'.
        self.device: Literal["cpu", "cuda"] = (
            "cuda" if self._session.get_providers()[0] == "CUDAExecutionProvider" else "cpu"
        )
        if options.device == "cuda" and self.device == "cpu":
            raise PoseError(
                f"device: cuda was requested, but ONNX Runtime cannot start CUDA for {path.name}; "
                "check the driver and the CUDA libraries, or use cpu"
            )
        network_input = self._session.get_inputs()[0]
        self._name: str = network_input.name
        # Shape of the input; None for dynamic axes.
        self.shape: tuple[int | None, ...] = tuple(
            axis if isinstance(axis, int) else None for axis in network_input.shape
        )
        if math.prod(axis or 1 for axis in self.shape) > MAX_INPUT_VALUES:
            raise PoseError(f"{path}: its input has the shape {network_input.shape}, which is too large")
        if len(self.shape) != 4 or network_input.type not in _DTYPES:
            form = f"{network_input.type} of the shape {network_input.shape}"
            raise PoseError(f"{path}: its input is a {form}; expected images (B, 3, H, W)")
        self.dtype = np.dtype(_DTYPES[network_input.type])  # data type of the input
        # Metadata written by the exporter.
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        if options.precision != "auto" and self.dtype.kind == "f" and self.dtype != options.precision:
            raise PoseError(
                f"precision: {path.name} was exported in {self.dtype}, not {options.precision}; use precision auto"
            )

    def input(
        self, *, mean: Sequence[float] = (0.0, 0.0, 0.0), std: Sequence[float] = (1.0, 1.0, 1.0), bgr: bool = False
    ) -> NetworkInput:
        """Return the converter from images to this network's input, on its device or, without torch on it, the CPU."""
        device = "cuda" if self.device == "cuda" and torch_has_cuda() else "cpu"
        return NetworkInput(device, self.dtype, mean=mean, std=std, bgr=bgr)

    @property
    def batch(self) -> int | None:
        """Batch size of the file; None if it is dynamic."""
        return self.shape[0]

    def input_side(self, requested: int | None, default: int, step: int) -> int:
        """Return the side in px, a multiple of `step`, of the square input of a network with input (B, 3, H, W).

        Raises:
            PoseError: If the input of the file has another fixed size, or is not square.
            UsageError: If `requested` is not a positive multiple of `step`.
        """
        height, width = self.shape[2:]
        if height != width:
            raise PoseError(f"{self._file}: its input is {width}x{height} px; only square ones are supported")
        if requested is not None and (requested < step or requested % step):
            raise UsageError(f"image size: {requested} is not a positive multiple of {step} px")
        if requested is not None and height is not None and requested != height:
            raise PoseError(f"image size: {self._file} was exported for {height} px, not {requested}; export it again")
        return requested or height or default

    def run(self, samples: Samples) -> list[Array]:
        """Run the network on samples (B, ...) in batches of the file's size, and return all outputs."""
        if self.batch is None or self.batch == len(samples):
            return self._run(samples)
        step, parts = self.batch, []
        for start in range(0, len(samples), step):
            part = samples[start : start + step]
            # The last batch is filled with copies of its first sample.
            parts.append(self._run(part if len(part) == step else part[[*range(len(part)), *[0] * (step - len(part))]]))
        return [np.concatenate(rows)[: len(samples)] for rows in zip(*parts, strict=True)]

    def _run(self, samples: Samples) -> list[Array]:
        if isinstance(samples, np.ndarray):
            return list(self._session.run(None, {self._name: samples}))
        samples = samples.contiguous()
        binding = self._session.io_binding()
        device = samples.device
        binding.bind_input(
            self._name, device.type, device.index or 0, self.dtype.type, tuple(samples.shape), samples.data_ptr()
        )
        for output in self._session.get_outputs():
            binding.bind_output(output.name)
        if device.type == "cuda":  # ONNX Runtime uses its own stream, so pending work must be finished
            import torch

            torch.cuda.current_stream(device).synchronize()
        self._session.run_with_iobinding(binding)
        return list(binding.copy_outputs_to_cpu())


def open_session(path: Path, device: Device, threads: int, *, content: bytes | None = None) -> "InferenceSession":
    """Open an ONNX network; with `content`, `path` is only a name in messages."""
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise PoseError(
            f"{path.name} needs ONNX Runtime: pip install 'pose-run[onnx]' (for CUDA: [onnx-gpu])"
        ) from error
    providers = ["CPUExecutionProvider"]
    if device != "cpu" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        onnxruntime.preload_dlls()  # CUDA libraries from Python packages, for example torch's
        providers.insert(0, "CUDAExecutionProvider")
    elif device == "cuda":
        raise PoseError(
            "device: cuda was requested, but this ONNX Runtime is a CPU build; install onnxruntime-gpu, or use cpu"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Busy waiting takes CPU time from other threads: it was half of RTMDet-nano's CPU time on two threads.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4 if device == "auto" else 3
    try:
        return onnxruntime.InferenceSession(content or os.fspath(path), options, providers=providers)
    except Exception as error:  # the library's exceptions have no public base class
        raise PoseError(f"{path}: not a readable ONNX model ({in_brief(error)})") from error
