"""Clock offsets of cameras from sound and from the files' time stamps."""

from collections.abc import Sequence
from dataclasses import dataclass

from pose.multiview.sound import sound_lag
from pose.multiview.types import ViewCamera
from pose.video.recorded import Recorded
from pose.video.waveform import Waveform

SOUND, TIMECODE, DATE, MOTION, GIVEN = "sound", "timecode", "date", "motion", "given"
SYNCHRONOUS = "synchronous"  # clock of a calibrated camera that people do not contradict
CAPTURE = "capture"  # source of clocks: time stamps of live images
SIGMAS = {
    SOUND: 0.015,
    TIMECODE: 0.03,
    DATE: 1.5,
    CAPTURE: 0.1,
}  # s, standard deviations by source; sound takes 3 ms per metre


@dataclass(frozen=True, slots=True)
class ClockHint:
    """Offset between two cameras' clocks, estimated from sound or time stamps."""

    first: int  # index of the first camera
    second: int  # index of the second camera
    seconds: float  # time that converts the second camera's clock to the first's when added to it
    source: str  # name of the source, a key of `SIGMAS`

    @property
    def sigma(self) -> float:
        """Standard deviation of `seconds`, s."""
        return SIGMAS[self.source]

    def agrees(self, cameras: Sequence[ViewCamera]) -> bool:
        """Return whether the cameras' clocks agree with this offset within three standard deviations."""
        off = cameras[self.second].offset - cameras[self.first].offset - self.seconds
        return abs(off) < 3 * self.sigma


def clock_hints(waves: Sequence[Waveform | None], recorded: Sequence[Recorded]) -> list[ClockHint]:
    """Return the clock offsets of all pairs of cameras that sound or time stamps give."""
    hints = []
    for second in range(len(recorded)):
        for first in range(second):
            first_wave, second_wave = waves[first], waves[second]
            found_lag = (
                sound_lag(first_wave, second_wave) if first_wave is not None and second_wave is not None else None
            )
            if found_lag is not None:
                hints.append(ClockHint(first, second, found_lag.seconds, SOUND))
            for source in (TIMECODE, DATE):
                first_stamp, second_stamp = (getattr(recorded[index], source) for index in (first, second))
                if first_stamp is not None and second_stamp is not None:
                    hints.append(ClockHint(first, second, second_stamp - first_stamp, source))
    return hints
