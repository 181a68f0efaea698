"""Parts of live runs that are common to all displays: networks, sinks, recording."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose_apps.support.world import steps_of
from pose_apps.webcam.options import Sink, WebcamConfig, open_sinks

if TYPE_CHECKING:
    from pose.live import Loop
    from pose.live.recorder import Recorder
    from pose.pipeline import Pipeline
    from pose.structures.camera import Camera
    from pose.structures.types import F64
    from pose.world.clean import Steps


def load_pipeline(config: PipelineConfig, intrinsics: "str | F64 | Camera | None" = None) -> "Pipeline":
    """Load the networks for live use, with a camera, or intrinsics as `fx,fy,cx,cy` px or a file, if known."""
    from pose.pipeline import Pipeline
    from pose_apps.support.intrinsics import read_intrinsics
    from pose_apps.support.lifters import allow_research_lifters

    matrix = read_intrinsics(intrinsics) if isinstance(intrinsics, str) else intrinsics
    allow_research_lifters(config.lifter)
    pipeline = Pipeline(config, intrinsics=matrix, live=True)
    if pipeline.fallback_reason:
        print(f"note: {pipeline.fallback_reason}", file=sys.stderr)
    return pipeline


def world_steps(config: WebcamConfig, pipeline: "Pipeline") -> "Steps | None":
    """Return the settings of the world coordinates; None if these are disabled."""
    return steps_of(config, bones=pipeline.config.constant_bones) if config.world else None


class LiveOutputs:
    """Outputs of a live loop besides the display: sinks by option, such as "--udp", and recording."""

    def __init__(self, loop: "Loop", config: WebcamConfig) -> None:
        self.sinks: dict[str, Sink] = {}  # sinks by their option, such as "--udp". They send or show live poses
        self.failures: list[str] = []  # problems that make the exit status of the run 1
        self.recorder: Recorder | None = None  # current recording; None without one
        self._missing = 0  # frames lost in finished recordings
        self._loop, self._folder = loop, Path(config.out)

    def record(self) -> None:
        """Start recording."""
        from pose.live.recorder import Recorder

        self.recorder = Recorder(self._loop, self._folder, restart_on_change=True)

    def stop_recording(self) -> str:
        """Finish the recording, print a line about its files, and return this line; empty without a recording."""
        if self.recorder is None:
            return ""
        recorder, self.recorder = self.recorder, None
        words = close_recorder(recorder)
        self._missing += recorder.dropped
        if recorder.problem is not None:
            self.failures.append(f"the recording ended early: {recorder.problem}")
        return words

    def problems(self) -> dict[str, str]:
        """Return the problem, or "", of each sink, by its option, and of "the recording"."""
        found = {option: sink.problem or sink.trouble for option, sink in self.sinks.items()}
        if (recorder := self.recorder) is not None:  # read once, because another thread may end the recording
            found["the recording"] = recorder.problem or ""
        return found

    def lost(self) -> dict[str, int]:
        """Return the number of lost messages of each sink, by its option, and of frames of "recording", if any."""
        lost = {option: sink.lost for option, sink in self.sinks.items()}
        recorder = self.recorder
        missing = self._missing + (recorder.dropped if recorder is not None else 0)
        return lost | ({"recording": missing} if missing else {})


@contextmanager
def open_live_outputs(loop: "Loop", config: WebcamConfig) -> Iterator[LiveOutputs]:
    """Open the sinks and start the recording, before the loop starts, and print their problems at the end."""
    outputs = LiveOutputs(loop, config)
    with ExitStack() as stack:
        for option, sink in open_sinks(loop, config, config.token):
            outputs.sinks[option] = sink
            stack.callback(_close, option, sink)
        stack.callback(outputs.stop_recording)
        if config.record:
            outputs.record()
        yield outputs


def _close(option: str, sink: Sink) -> None:
    sink.close()
    if sink.problem is not None:
        print(f"warning: {option} ended early: {sink.problem}", file=sys.stderr)
    if sink.lost:
        print(f"{option}: {sink.lost} messages lost", flush=True)


def finish_interrupted_recordings(config: WebcamConfig) -> None:
    """Complete the recordings in `config.out` that killed runs left incomplete, and print a line about each."""
    from pose.live.recording import finish_interrupted

    for line in finish_interrupted(Path(config.out)):
        print(f"note: {line}", file=sys.stderr)


def close_recorder(recorder: "Recorder") -> str:
    """Finish the files of a recording, print a line about them, and return this line."""
    recorder.close()
    parts = []
    for recording in recorder.finished:
        missing = [name for name, path in recording.files.items() if path is None]
        if len(missing) < len(recording.files):
            part = f"{recording.frames} frames into {recording.folder}"
            parts.append(part + (f", without {' and '.join(missing)}" if missing else ""))
    words = f"recorded {'; '.join(parts)}" if parts else "nothing was recorded"
    if recorder.dropped:
        words += f"; {recorder.dropped} frames lost: the disk was too slow"
    if recorder.problem is not None:
        words += f"; it ended early: {recorder.problem}" if parts else f": {recorder.problem}"
    print(words, flush=True)
    return words
