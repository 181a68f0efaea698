"""Thresholds of live world coordinates. The suffixes of their names give the units, as in `pose.world.rules`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRules:
    """Thresholds of live processing (`pose.world.live`).

    Attributes:
        bone_settle_s: Duration of clear view after which a bone length no longer changes.
        max_clear_sigma_mm: Maximum uncertainty (sigma) of joints that count as clearly seen.
        unsettled_share: Additional relative standard deviation of a person's height at first. It decreases while bone
            lengths are measured.
        start_depth_m: Mean of the prior of a person's distance.
        start_depth_sigma_m: Standard deviation of this prior.
        min_depth_m: Minimum distance of a person.
        contact_on_speed_mps: Speed of an ankle below which a contact begins, measured over `speed_window_s`.
        contact_off_speed_mps: Speed of an ankle above which a contact ends, measured over `speed_window_s`.
        speed_window_s: Time window of ankle speeds.
        store_interval_s: Interval between stored poses, from which the vertical, floor and sizes are estimated.
        memory_s: Time for which poses are stored.
        max_people: Maximum number of people whose poses are stored.
        update_interval_s: Interval between two estimates of the world frame.
        new_person_interval_s: Minimum interval between two estimates while people enter.
        first_update_s: Time of the first estimate of the world frame.
        floor_update_interval_s: Interval between two estimates of the floor under each person.
        floor_window_s: Duration of the motion from which the floor under a person is estimated.
        blend_s: Time constant with which the displayed world frame and sizes follow the estimate.
        shift_blend_s: Time constant with which people follow the floor.
        forget_s: Time without detections after which a person is forgotten.
        min_footing_s: Minimum duration of samples of standing feet for a decision whether the camera translates
            (`pose.world.live_footing`).
        min_sliding_s: Time for which standing feet must slide before world coordinates end.
        footing_update_interval_s: Interval between two decisions whether the camera translates.
        max_unsupported_s: Maximum duration of a camera motion for which neither feet nor background show that it is a
            pure rotation.
    """

    bone_settle_s: float = 10.0
    max_clear_sigma_mm: float = 30.0
    unsettled_share: float = 0.05
    start_depth_m: float = 4.0
    start_depth_sigma_m: float = 10.0
    min_depth_m: float = 0.2
    contact_on_speed_mps: float = 0.7
    contact_off_speed_mps: float = 0.9
    speed_window_s: float = 0.2
    store_interval_s: float = 0.1
    memory_s: float = 60.0
    max_people: int = 16
    update_interval_s: float = 3.0
    first_update_s: float = 0.25
    new_person_interval_s: float = 0.5
    floor_update_interval_s: float = 0.2
    floor_window_s: float = 1.0
    blend_s: float = 1.0
    shift_blend_s: float = 0.25
    forget_s: float = 2.0
    min_footing_s: float = 3.0
    min_sliding_s: float = 2.0
    footing_update_interval_s: float = 0.5
    max_unsupported_s: float = 5.0
