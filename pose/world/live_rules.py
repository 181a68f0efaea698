"""Thresholds of live world coordinates. The suffixes of their names give the units, as in `pose.world.rules`."""


class LiveRules:
    """Thresholds of live processing (`pose.world.live`)."""

    bone_settle_s: float = 10.0  # duration of clear view after which a bone length no longer changes
    max_clear_sigma_mm: float = 30.0  # maximum uncertainty (sigma) of joints that count as clearly seen
    # Additional relative standard deviation of a person's height at first. It decreases while bone lengths are
    # measured.
    unsettled_share: float = 0.05
    start_depth_m: float = 4.0  # mean of the prior of a person's distance
    start_depth_sigma_m: float = 10.0  # standard deviation of this prior
    min_depth_m: float = 0.2  # minimum distance of a person
    contact_on_speed_mps: float = 0.7  # speed of an ankle below which a contact begins, measured over `speed_window_s`
    contact_off_speed_mps: float = 0.9  # speed of an ankle above which a contact ends, measured over `speed_window_s`
    speed_window_s: float = 0.2  # time window of ankle speeds
    # Interval between stored poses, from which the vertical, floor and sizes are estimated.
    store_interval_s: float = 0.1
    memory_s: float = 60.0  # time for which poses are stored
    max_people: int = 16  # maximum number of people whose poses are stored
    update_interval_s: float = 3.0  # interval between two estimates of the world frame
    max_update_interval_s: float = 12.0  # interval while the estimate does not change
    # Change of vertical, focal length and sizes in standard deviations up to which the estimate does not change.
    max_settled_sigmas: float = 0.3
    new_person_interval_s: float = 0.5  # minimum interval between two estimates while people enter
    first_update_s: float = 0.25  # time of the first estimate of the world frame
    floor_update_interval_s: float = 0.2  # interval between two estimates of the floor under each person
    floor_window_s: float = 1.0  # duration of the motion from which the floor under a person is estimated
    blend_s: float = 1.0  # time constant with which the displayed world frame and sizes follow the estimate
    shift_blend_s: float = 0.25  # time constant with which people follow the floor
    forget_s: float = 2.0  # time without detections after which a person is forgotten
    # Minimum duration of samples of standing feet for a decision whether the camera translates
    # (`pose.world.live_footing`).
    min_footing_s: float = 3.0
    min_sliding_s: float = 2.0  # time for which standing feet must slide before world coordinates end
    footing_update_interval_s: float = 0.5  # interval between two decisions whether the camera translates
    # Maximum duration of a camera motion for which neither feet nor background show that it is a pure rotation.
    max_unsupported_s: float = 5.0


LIVE = LiveRules()
