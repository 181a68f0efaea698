"""LiteRT (TensorFlow Lite) networks with float or integer input, on the CPU with XNNPACK."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError


class LiteRTModel:
    """One network of fixed input shape.

    Usage: write into `input()`, call `run()`, read what it returns before the next call. Both are views of the
    interpreter's own memory, so nothing is copied.
    """

    def __init__(self, path: Path, threads: int) -> None:
        """Raises PoseError when the file is missing or is no LiteRT model."""
        from ai_edge_litert.interpreter import Interpreter

        try:
            with _silent():
                self._interpreter = Interpreter(model_path=str(path), num_threads=threads)
                self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise PoseError(f"{path}: not a readable LiteRT model ({str(error).splitlines()[0]})") from error
        self._input: Callable[[], NDArray[Any]] = self._interpreter.tensor(
            self._interpreter.get_input_details()[0]["index"]
        )
        self._outputs: list[Callable[[], NDArray[Any]]] = [
            self._interpreter.tensor(detail["index"]) for detail in self._interpreter.get_output_details()
        ]

    def input(self) -> NDArray[Any]:
        """The input tensor, to be written. Hold no reference to it across `run`."""
        return self._input()

    def run(self) -> list[NDArray[Any]]:
        """Run the network; the outputs, valid until the next run. Hold no reference to them across `run`."""
        self._interpreter.invoke()
        return [output() for output in self._outputs]


def sigmoid(x: NDArray[np.floating]) -> NDArray[np.float32]:
    """Logistic function, safe for any finite x."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -80, 80))), np.float32)


@contextmanager
def _silent() -> Iterator[None]:
    """Without the lines that the native library writes to stderr while it loads; what matters it raises as well."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
