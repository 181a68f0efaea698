"""Options of all networks that find people or joints, in one object from the command line to the session."""

from dataclasses import dataclass

from pose.system.device import Device, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """Options of a network. A stage that cannot satisfy them raises PoseError; there is no silent fallback.

    Attributes:
        device: 'auto' means CUDA if available.
        precision: Arithmetic of the network; 'auto' is that of the file.
        threads: CPU threads.
        score: Minimum score of a detection; None is the network's default.
        size: Longer side of the input in px; None is that of the file.
    """

    device: Device = "auto"
    precision: Precision = "auto"
    threads: int = 2
    score: float | None = None
    size: int | None = None

    def score_or(self, own: float) -> float:
        """Return the minimum score, where `own` is the network's default."""
        return own if self.score is None else self.score


USUAL = StageOptions()
