"""Configuration of the people stage, with all its default values."""

from dataclasses import dataclass

from pose.structures.defaults import MAX_TRACK_GAP_S


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingConfig:
    """Settings of the people stage. `pose.config.PipelineConfig` takes its defaults from here and checks the ranges."""

    # Name of the box tracker that re-identifies people who come back, a key of
    # `pose.tracking.box_trackers.BOX_TRACKERS`.
    tracker: str = "ocsort"
    max_people: int = 10  # maximum number of people tracked at a time. Existing tracks have priority over new ones
    # Seconds between two detection passes while people are tracked. A pass is skipped if the image has not changed
    # outside the tracked people. 0 runs the detector on every frame.
    detection_interval_s: float = 0.3
    # Minimum probability, estimated with the keypoints, that the crop shows a person. A track below it is lost, unless
    # a detection confirms it.
    min_presence: float = 0.5
    memory_s: float = MAX_TRACK_GAP_S  # seconds after which a lost person is forgotten
