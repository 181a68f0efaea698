"""Compute devices of the networks."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

from pose.errors import PoseError

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "float16"]


def resolve_device(name: str) -> str:
    """Return the device, 'cpu' or 'cuda', for the name 'auto', 'cpu' or 'cuda'.

    'auto' selects CUDA if torch can use it.

    Raises:
        PoseError: If 'cuda' is requested but not available.
    """
    if name == "cpu" or (name == "auto" and not (driver_present() and has_torch())):
        return "cpu"
    require_torch("device: cuda")
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if name == "auto":
        return "cpu"
    if torch.version.cuda is None:
        raise PoseError("device: cuda was requested, but this torch is a CPU build; install a CUDA build or use cpu")
    raise PoseError("device: cuda was requested, but torch sees no CUDA device; check the driver or use cpu")


def driver_present() -> bool:
    """Return whether NVIDIA's driver library is installed. This is much faster than importing torch."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def onnx_has_cuda() -> bool:
    """Return whether a CUDA build of ONNX Runtime is installed."""
    try:
        import onnxruntime
    except ImportError:
        return False
    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


def has_torch() -> bool:
    """Return whether torch is installed, without importing it."""
    return find_spec("torch") is not None


def torch_has_cuda() -> bool:
    """Return whether torch is installed and can use a GPU."""
    if not has_torch():
        return False
    import torch

    return torch.cuda.is_available()


def require_torch(what: str) -> None:
    """Raise a PoseError that begins with the feature if torch is not installed."""
    if not has_torch():
        raise PoseError(f'{what} needs torch: pip install "pose-run[torch]"')


def seed_torch(seed: int) -> None:
    """Set torch's random seed. This has no effect if torch has not been imported."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Return a context manager that sets the number of CPU threads of torch, if it has been imported."""
    if (torch := sys.modules.get("torch")) is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def opencv_threads(count: int) -> Iterator[None]:
    """Return a context manager that sets OpenCV's threads; at common image sizes, few are faster than many."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(count)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
