"""Thresholds of live world coordinates; names follow `pose.world.rules`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRules:
    """Thresholds of live processing (`pose.world.live`).

    Attributes:
        bone_settle_s: Seconds of clear view after which a bone length is constant.
        clear_sigma_mm: Sigma of clearly seen joints.
        unsettled_share: Additional relative error of the height in the first second.
        start_depth_m: Prior distance of a person.
        start_depth_sigma_m: Standard deviation of that prior.
        min_depth_m: Lower bound of distances.
        contact_on_speed_mps: See `ContactRules`; for speeds over the last `speed_window_s`.
        contact_off_speed_mps: See `ContactRules`; for these speeds.
        remember_every_s: Interval between poses stored for the world, for `memory_s`, of at most `max_people`.
        update_s: Interval between two estimates of the world.
        first_update_s: Time of the first estimate.
        floor_update_s: Interval between two estimates of the floor under each person, from the last `floor_window_s`.
        blend_s: Time constant with which the displayed world follows the estimate.
        forget_s: A person unseen for this long is forgotten.
        footing_s: Minimum duration of samples of standing feet that decide about the camera
            (`pose.world.live_footing`).
        sliding_s: Time for which they must slide before the world ends.
        footing_update_s: Interval between two such decisions.
        unsupported_s: Time for which a camera may move if neither feet nor background show that it only turns.
    """

    bone_settle_s: float = 10.0
    clear_sigma_mm: float = 30.0
    unsettled_share: float = 0.05
    start_depth_m: float = 4.0
    start_depth_sigma_m: float = 10.0
    min_depth_m: float = 0.2
    contact_on_speed_mps: float = 0.7
    contact_off_speed_mps: float = 0.9
    speed_window_s: float = 0.2
    remember_every_s: float = 0.1
    memory_s: float = 60.0
    max_people: int = 16
    update_s: float = 3.0
    first_update_s: float = 0.25
    floor_update_s: float = 0.5
    floor_window_s: float = 5.0
    blend_s: float = 1.0
    forget_s: float = 2.0
    footing_s: float = 3.0
    sliding_s: float = 2.0
    footing_update_s: float = 0.5
    unsupported_s: float = 5.0
