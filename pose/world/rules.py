"""Thresholds of the world steps; `pose.world.clean` has their order.

All were chosen on training subjects of the motion capture (docs/studies/world.md), none on test subjects. A name says
what it bounds and in which unit: `_m`, `_s`, `_mps` (m/s), `_hz`, `_mm`, `_share` (a ratio), `_degrees`, `_rad`.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRules:
    """fitted_share: weight of the least-squares fit to the 2D in the distance of a frame; the rest is the lifter's own.
    pixel_sigma_share: standard deviation of a 2D joint, as a share of the body's extent. variance_factor: factor on the
    variance of one frame's distance, because errors of neighbouring frames are correlated. outlier_share: share of the
    body's extent by which a joint may be off before its weight falls to half. agility_mps15: m/s^1.5, process noise of
    the speed along the viewing direction. speed_memory_s: time constant with which that speed decays.
    unknown_lens_share: relative standard deviation of distances when the field of view is assumed; lenses in use span
    35 to 90 degrees.
    """

    fitted_share: float = 0.25
    pixel_sigma_share: float = 0.01
    variance_factor: float = 10.0
    outlier_share: float = 0.25
    agility_mps15: float = 1.0
    speed_memory_s: float = 1.0
    unknown_lens_share: float = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRules:
    """longest_gap_s: longest gap that is filled. Nothing is filled or smoothed across a longer one."""

    longest_gap_s: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothRules:
    """cutoff_hz: cut-off of the zero-phase filter. live_cutoff_hz, live_cutoff_hz_per_mps: cut-off of the One-Euro
    filter at rest, and its increase per m/s; live_root_...: the same for the pelvis. live_speed_cutoff_hz: cut-off of
    the speed that One-Euro uses.
    """

    cutoff_hz: float = 6.0
    live_cutoff_hz: float = 8.0
    live_cutoff_hz_per_mps: float = 40.0
    live_root_cutoff_hz: float = 1.5
    live_root_cutoff_hz_per_mps: float = 6.0
    live_speed_cutoff_hz: float = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityRules:
    """feet_ahead_share: the middle of the feet lies ahead of the ankles by this share of the height of the centre of
    mass above them. upright_share: only frames count in which that height exceeds this share of its maximum.
    max_tilt_degrees: bodies that lean more from the camera's vertical are ignored. body_sigma_rad: error of the
    direction from one person in one posture. posture_sigma_rad: additional error for a person seen for one second; it
    falls with the square root of the duration. standing_speed_mps: slower feet may stand. foot_height_sigma_m: distance
    of standing feet from their plane. foot_spread_m: spread over the floor that depth errors alone cause.
    plane_distance_m: feet farther from the plane do not stand on it. correlation_s: time for which foot errors stay the
    same. trusted_degrees: with a larger uncertainty the vertical is reported as unknown.
    """

    feet_ahead_share: float = 0.09
    upright_share: float = 0.95
    max_tilt_degrees: float = 50.0
    body_sigma_rad: float = 0.04
    posture_sigma_rad: float = 0.07
    standing_speed_mps: float = 0.4
    foot_height_sigma_m: float = 0.04
    foot_spread_m: float = 0.2
    plane_distance_m: float = 0.06
    correlation_s: float = 0.5
    trusted_degrees: float = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRules:
    """standing_speed_mps: slower feet stand. lowest_percentile: per cent of standing feet that may be lower than the
    floor because of errors. max_step_m: a person whose own floor is this close to the common floor is moved onto it;
    one farther away stands on something else. seen_score: minimum 2D score of an ankle.
    """

    standing_speed_mps: float = 0.5
    lowest_percentile: float = 20.0
    max_step_m: float = 0.3
    seen_score: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRules:
    """contact_on_speed_mps, contact_off_speed_mps: hysteresis thresholds of the ankle's speed. contact_height_m:
    maximum height of the ankle above its standing height. max_flight_s: nobody is off the ground for longer before or
    after the lowest moment of a jump. min_contact_s: shortest contact, and shortest pause between two. speed_width_mps,
    height_width_m: widths of the logistic functions that give the probability.
    """

    contact_on_speed_mps: float = 0.5
    contact_off_speed_mps: float = 0.7
    contact_height_m: float = 0.16
    max_flight_s: float = 0.6
    min_contact_s: float = 0.1
    speed_width_mps: float = 0.15
    height_width_m: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class FootRules:
    """max_slide_m: distance (x, y, z of the world) that a foot may move within slide_window_s and still count as
    standing; in a whole stance three times as far. z is the viewing direction, in which depth drifts.
    contact_step_sigma_m: standard deviation of a standing foot's motion between frames at rate_fps. path_sigma_m:
    standard deviation of the body's path (x, y, z). step_sigma_m: of the change of its correction between frames.
    max_foot_shift_m: limit of the correction of a foot. bend_share: share of that correction along the leg that bending
    takes; the rest turns the leg only, because a nearly straight leg moves its knee far for a small change of length.
    fade_s: duration over which a correction begins and ends.
    """

    max_slide_m: tuple[float, float, float] = (0.2, 0.2, 0.4)
    slide_window_s: float = 1.0
    contact_step_sigma_m: float = 0.004
    rate_fps: float = 30.0
    path_sigma_m: tuple[float, float, float] = (0.03, 0.05, 0.2)
    step_sigma_m: float = 0.006
    max_foot_shift_m: float = 0.05
    bend_share: float = 0.2
    fade_s: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRules:
    """ankle_height_m, crown_height_m: extent of an adult's body below the ankle and above the head joint.
    live_sigma_share: relative standard deviation of the lifter's body size on the adults of the training and validation
    subjects; only live, where nothing else is known.

    The rest is of `pose.world.sizes`. adult_sigma: standard deviation of the log scale of adults about the lifter's
    height: the spread of adult heights of both sexes is 0.054 (C. C. Gordon et al., NATICK/TR-15/007, ANSUR II, 2014:
    men 1.756 +- 0.069 m, women 1.629 +- 0.064 m), and the lifter's mean is that of its training subjects.
    adult_log_heights: range of the log height, m, as lifted, that adults have; outside it the lifter is wrong.
    child_share: prior probability of a child or a very small adult. child_log_scale, child_sigma: mean and standard
    deviation of a child's log scale about the lifter's height. adult_means, adult_sigmas: logarithms of leg and head
    length as shares of the straight body, and of the height, as the lifter finds them for adults; child_offset,
    child_slopes: logistic regression of child against adult on them. All fitted to virtual people of training subjects
    with proportions from two years to adult. group_sigma_factor: factor on the posterior's standard deviation of people
    who are compared with others: their feet err together; the posterior of a person alone needs none. floor_sigma_m,
    floor_sigma_share: error of the height of standing feet, and a share of their distance. step_share, step_m:
    probability that somebody stands on something, and its mean height. stray_share, stray_m: probability that feet are
    anywhere, and within how many metres.
    """

    ankle_height_m: float = 0.08
    crown_height_m: float = 0.10
    live_sigma_share: float = 0.035
    adult_log_heights: tuple[float, float] = (0.477, 0.637)
    adult_sigma: float = 0.05
    child_share: float = 0.4
    child_log_scale: float = -0.25
    child_sigma: float = 0.11
    adult_means: tuple[float, float, float] = (-0.695, -1.742, 0.548)
    adult_sigmas: tuple[float, float, float] = (0.0247, 0.0693, 0.0353)
    child_offset: float = -0.91
    child_slopes: tuple[float, float, float] = (-0.10, 0.65, -0.86)
    group_sigma_factor: float = 1.15
    floor_sigma_m: float = 0.04
    floor_sigma_share: float = 0.01
    step_share: float = 0.05
    step_m: float = 0.8
    stray_share: float = 0.005
    stray_m: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRules:
    """What is different without a future (`pose.world.live`). bone_settle_s: seconds of clear view after which a bone
    keeps its length. clear_sigma_mm: sigma of clearly seen joints. unsettled_share: additional relative error of the
    height in the first second. start_depth_m, start_depth_sigma_m: distance assumed before a person is measured.
    min_depth_m: lower bound of distances. contact_on_speed_mps, contact_off_speed_mps: as in `ContactRules`, for speeds
    over the last speed_window_s. remember_every_s: interval between poses kept for the world, for memory_s, of at most
    max_people. update_s, first_update_s: interval between two estimates of the world, and the first one.
    floor_update_s: interval between two estimates of the floor under each person, from the last floor_window_s.
    blend_s: time constant with which the shown world follows the estimate. forget_s: a person unseen for this long is
    forgotten.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRules:
    """longest_gap_s: longest gap between two tracks of one person. across_m, along_m: maximum distance of the second
    track's start from where the first would be, across the view and along it; growth_mps: increase of both per second.
    bone_share: maximum relative difference of bone lengths. pose_m: maximum mean distance of joints, and
    pose_growth_mps: its increase per second.
    """

    longest_gap_s: float = 3.0
    across_m: float = 0.3
    along_m: float = 0.6
    growth_mps: float = 0.5
    bone_share: float = 0.1
    pose_m: float = 0.15
    pose_growth_mps: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRules:
    """seen_score: minimum 2D score of a joint that counts as seen. max_pause_s: longest pause within a piece of a
    track, at least two frames. min_seen_s: a piece seen for less is left out where less than min_seen_share of the time
    within around_s of it is seen. doubtful_seen_s, doubtful_joint_share: a track is doubtful if it is seen for less, or
    with a smaller share of its joints in the mean.
    """

    seen_score: float = 0.3
    max_pause_s: float = 0.12
    min_seen_s: float = 0.25
    around_s: float = 0.5
    min_seen_share: float = 0.33
    doubtful_seen_s: float = 0.5
    doubtful_joint_share: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimRules:
    """seen_score: minimum 2D score of a joint that counts as seen. visible_share: of the joints, for a person to count
    as fully visible."""

    seen_score: float = 0.3
    visible_share: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyRules:
    """seen_score: minimum 2D score of a joint that counts. window_s: duration over which medians are taken.
    least_frames, least_share: minimum number, and share, of its frames that show both ends of a bone. leg_log_ratio:
    minimum logarithm, up or down, of the ratio of thigh to shank, each seen as a share of its length; leg_difference:
    by which it must differ from that of the other leg. arm_log_ratio: the same for an arm; arm_stretch: and how long
    one of its bones must be seen, as a share of its length. leg_sigma_share, arm_sigma_share: factors on the
    displacement of the middle joint that give the added sigma; with them 68 % of the displaced knees and elbows of
    training subjects are within sigma.
    """

    seen_score: float = 0.3
    window_s: float = 2.0
    least_frames: int = 3
    least_share: float = 0.3
    leg_log_ratio: float = 0.5
    leg_difference: float = 0.7
    arm_log_ratio: float = 0.8
    arm_stretch: float = 1.2
    leg_sigma_share: float = 0.8
    arm_sigma_share: float = 0.45


@dataclass(frozen=True, slots=True, kw_only=True)
class FootingRules:
    """Whether feet stand once a moving camera is compensated (`pose.world.footing`). width_mps: of the kernel of the
    density of velocities. along_share: factor on velocities along the line of sight, which err more. vertical_mps: a
    foot that rises or falls faster does not stand. window_s: duration of a window. least_s: of samples in it.
    least_standing: density at rest over the highest density below which feet slide; least_standing_uncertain: the same
    where the background does not tell rotation from translation. most_sliding: share of the windows that may slide.
    """

    width_mps: float = 0.1
    along_share: float = 0.5
    vertical_mps: float = 0.3
    window_s: float = 8.0
    least_s: float = 0.5
    least_standing: float = 0.5
    least_standing_uncertain: float = 0.65
    most_sliding: float = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All of them."""

    depth: DepthRules = field(default_factory=DepthRules)
    gaps: GapRules = field(default_factory=GapRules)
    smooth: SmoothRules = field(default_factory=SmoothRules)
    gravity: GravityRules = field(default_factory=GravityRules)
    floor: FloorRules = field(default_factory=FloorRules)
    contacts: ContactRules = field(default_factory=ContactRules)
    feet: FootRules = field(default_factory=FootRules)
    size: SizeRules = field(default_factory=SizeRules)
    tracks: TrackRules = field(default_factory=TrackRules)
    joins: JoinRules = field(default_factory=JoinRules)
    trim: TrimRules = field(default_factory=TrimRules)
    consistency: ConsistencyRules = field(default_factory=ConsistencyRules)
    footing: FootingRules = field(default_factory=FootingRules)
    live: LiveRules = field(default_factory=LiveRules)


RULES = Rules()
