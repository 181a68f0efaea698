"""Options common to all networks that find people or joints."""

from dataclasses import dataclass

from pose.utils.device import Device, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """Options of a network. A network that cannot satisfy them raises PoseError; there is no silent fallback."""

    device: Device = "auto"  # 'cpu', 'cuda', or 'auto' for CUDA if it is available
    # Precision of the arithmetic, 'float32' or 'float16'. 'auto' is that of an ONNX file, or the network's default.
    precision: Precision = "auto"
    threads: int = 2  # number of CPU threads
    score: float | None = None  # minimum score of a detection; None for the network's default
    size: int | None = None  # longer side of the input in px; None for that of the file, or the network's default

    def min_score_or(self, default: float) -> float:
        """Return the requested minimum score, or the network's default `default` if none was requested."""
        return default if self.score is None else self.score


DEFAULT_OPTIONS = StageOptions()
