"""What sound and the files' time stamps say of the clocks of cameras, beside their motion."""

from collections.abc import Sequence
from dataclasses import dataclass

from pose.multiview.sound import heard_lag
from pose.multiview.types import ViewCamera
from pose.video.recorded import Recorded
from pose.video.waveform import Waveform

SOUND, TIMECODE, DATE, MOTION, GIVEN = "sound", "timecode", "date", "motion", "given"
SIGMAS = {SOUND: 0.015, TIMECODE: 0.03, DATE: 1.5}  # s; sound takes 3 ms for each metre


@dataclass(frozen=True, slots=True)
class ClockHint:
    """seconds: to add to the second camera's clock to get the first's, by `source`, a key of `SIGMAS`."""

    first: int
    second: int
    seconds: float
    source: str

    @property
    def sigma(self) -> float:
        """s, its standard deviation."""
        return SIGMAS[self.source]

    def agrees(self, cameras: Sequence[ViewCamera]) -> bool:
        """Whether the clocks of cameras are as it says, within three standard deviations."""
        off = cameras[self.second].offset - cameras[self.first].offset - self.seconds
        return abs(off) < 3 * self.sigma


def clock_hints(waves: Sequence[Waveform | None], recorded: Sequence[Recorded]) -> list[ClockHint]:
    """All that sound and time stamps say of each pair of cameras. Both in the order of the cameras."""
    found = []
    for second in range(len(recorded)):
        for first in range(second):
            one, other = waves[first], waves[second]
            heard = heard_lag(one, other) if one is not None and other is not None else None
            if heard is not None:
                found.append(ClockHint(first, second, heard.seconds, SOUND))
            for source in (TIMECODE, DATE):
                here, there = (getattr(recorded[index], source) for index in (first, second))
                if here is not None and there is not None:
                    found.append(ClockHint(first, second, there - here, source))
    return found
