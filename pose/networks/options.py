"""What every network that finds people or joints can be told, in one object from the command line to the session."""

from dataclasses import dataclass

from pose.system.device import Device, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """device: 'auto' takes CUDA where it can be used. precision: what the network computes in; 'auto' is the file's
    own. threads: on the CPU. score: least score of a detection; None is the network's own. size: longer side of the
    input, px; None is the file's own.

    A stage that cannot do what is asked raises PoseError; none goes on with something else in silence.
    """

    device: Device = "auto"
    precision: Precision = "auto"
    threads: int = 2
    score: float | None = None
    size: int | None = None

    def score_or(self, own: float) -> float:
        """The least score, where `own` is the network's."""
        return own if self.score is None else self.score


USUAL = StageOptions()
