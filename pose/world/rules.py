"""Thresholds of the world steps; `pose.world.clean` has their order.

All were chosen on training subjects of the motion capture (docs/studies/world.md), none on test subjects. A name says
what it bounds and in which unit: `_m`, `_s`, `_mps` (m/s), `_hz`, `_mm`, `_share` (a ratio), `_degrees`, `_rad`.
"""

from dataclasses import dataclass, field

from pose.world.live_rules import LiveRules


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRules:
    """Thresholds of the distance step.

    Attributes:
        fitted_share: Weight of the least-squares fit to the 2D in the distance of a frame; the rest is the lifter's
            own.
        pixel_sigma_share: Standard deviation of a 2D joint, as a share of the body's extent.
        variance_factor: Factor on the variance of one frame's distance, because errors of neighbouring frames are
            correlated.
        outlier_share: Share of the body's extent by which a joint may be off before its weight falls to half.
        agility_mps15: Process noise of the speed along the viewing direction, m/s^1.5.
        speed_memory_s: Time constant with which that speed decays.
        unknown_lens_share: Relative standard deviation of distances when the field of view is assumed; lenses in use
            span 35 to 90 degrees.
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
    """Thresholds of gap filling.

    Attributes:
        longest_gap_s: Longest gap that is filled. There is no filling or smoothing across longer ones.
    """

    longest_gap_s: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothRules:
    """Cut-off frequencies of the smoothing.

    Attributes:
        cutoff_hz: Cut-off of the zero-phase filter.
        live_cutoff_hz, live_cutoff_hz_per_mps: Cut-off of the One-Euro filter at rest, and its increase per m/s;
            live_root_...: the same for the pelvis.
        live_speed_cutoff_hz: Cut-off of the speed that One-Euro uses.
    """

    cutoff_hz: float = 6.0
    live_cutoff_hz: float = 8.0
    live_cutoff_hz_per_mps: float = 40.0
    live_root_cutoff_hz: float = 1.5
    live_root_cutoff_hz_per_mps: float = 6.0
    live_speed_cutoff_hz: float = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityRules:
    """Thresholds of the vertical.

    Attributes:
        feet_ahead_share: The middle of the feet lies ahead of the ankles by this share of the height of the centre of
            mass above them.
        upright_share: Minimum ratio of that height to its maximum for a frame to count.
        max_tilt_degrees: Bodies that lean more from the camera's vertical are ignored.
        body_sigma_rad: Error of the direction from one person in one posture.
        posture_sigma_rad: Additional error for a person seen for one second; it falls with the square root of the
            duration.
        standing_speed_mps: Slower feet may stand.
        foot_height_sigma_m: Distance of standing feet from their plane.
        foot_spread_m: Spread over the floor that depth errors alone cause.
        plane_distance_m: Feet farther from the plane do not stand on it.
        correlation_s: Time for which foot errors stay the same.
        trusted_degrees: Maximum standard deviation of the vertical; above it the vertical is reported as unknown.
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
    """Thresholds of the floor.

    Attributes:
        standing_speed_mps: Slower feet stand.
        lowest_percentile: Per cent of standing feet that may be lower than the floor because of errors.
        max_step_m: A person whose own floor is this close to the common floor is moved onto it; one farther away stands
            on something else.
        seen_score: Minimum 2D score of an ankle.
    """

    standing_speed_mps: float = 0.5
    lowest_percentile: float = 20.0
    max_step_m: float = 0.3
    seen_score: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRules:
    """Thresholds of foot contacts.

    Attributes:
        contact_on_speed_mps, contact_off_speed_mps: Hysteresis thresholds of the ankle's speed.
        contact_height_m: Maximum height of the ankle above its standing height.
        max_flight_s: Maximum flight time before or after the lowest point of a jump.
        min_contact_s: Shortest contact, and shortest pause between two.
        speed_width_mps, height_width_m: Widths of the logistic functions that give the probability.
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
    """Thresholds of the foot-locking step.

    Attributes:
        max_slide_m: Distance (x, y, z of the world) that a foot may move within slide_window_s and still count as
            standing; in a whole stance three times as far. z is the viewing direction, in which depth drifts.
        contact_step_sigma_m: Standard deviation of a standing foot's motion between frames at rate_fps.
        path_sigma_m: Standard deviation of the body's path (x, y, z).
        step_sigma_m: Standard deviation of the change of its correction between frames.
        max_foot_shift_m: Limit of the correction of a foot.
        bend_share: Share of that correction along the leg that bending takes; the rest turns the leg only, because a
            nearly straight leg moves its knee far for a small change of length.
        fade_s: Duration over which a correction begins and ends.
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
class SizePrior:
    """Prior of the log scale of one person relative to the lifter's size: a mixture of adults and children.

    Very small adults count as children.

    Attributes:
        adult_sigma: Standard deviation of adults.
        child_log_scale: Mean of children.
        child_sigma: Standard deviation of children.
        child_log_odds: Intercept of the logistic regression of child against adult.
        child_slopes: Slopes of that regression for leg length and head length, relative to the straight body, and for
            height, normalised with `SizeRules.adult_means`.
    """

    adult_sigma: float
    child_log_scale: float
    child_sigma: float
    child_log_odds: float
    child_slopes: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRules:
    """Thresholds of the sizes of people (`pose.world.sizes`).

    The priors were fitted to virtual people of training subjects with proportions from two years to adult.

    Attributes:
        adult_log_heights: Range of the logarithm of the lifted height (m) of adults; outside it the lifter is wrong.
        adult_means: Mean logarithms of leg length and head length, as shares of the straight body, and of the height.
        adult_sigmas: Standard deviations of these logarithms.
        estimate: Prior of the estimate: four of ten people are children, and adults are rarely taken for children.
        uncertainty: Prior of the uncertainty: half of the people are adults, half are children of 0.9 to 1.6 m. Adults
            vary as both sexes do (0.054: C. C. Gordon et al., NATICK/TR-15/007, ANSUR II, 2014: men 1.756 +- 0.069 m,
            women 1.629 +- 0.064 m). It ignores the share of the legs, which the lifter shortens if the camera looks
            down.
        group_sigma_factor: Factor on the uncertainty of people who are compared with others, whose feet have common
            errors.
        floor_sigma_m: Error of the height of standing feet.
        floor_sigma_share: The part of that error that grows with the distance.
        step_share: Probability that a person stands on something.
        step_m: Mean height of that object.
        stray_share: Probability that feet are at any height.
        stray_m: Range of these heights.
    """

    ankle_height_m: float = 0.08
    crown_height_m: float = 0.10
    live_sigma_share: float = 0.035
    adult_log_heights: tuple[float, float] = (0.477, 0.637)
    adult_means: tuple[float, float, float] = (-0.695, -1.742, 0.548)
    adult_sigmas: tuple[float, float, float] = (0.0247, 0.0693, 0.0353)
    estimate: SizePrior = SizePrior(
        adult_sigma=0.05, child_log_scale=-0.25, child_sigma=0.11, child_log_odds=-1.315,
        child_slopes=(-0.10, 0.65, -0.86),
    )  # fmt: skip
    uncertainty: SizePrior = SizePrior(
        adult_sigma=0.054, child_log_scale=-0.25, child_sigma=0.125, child_log_odds=-0.20,
        child_slopes=(0.0, 0.84, -0.46),
    )  # fmt: skip
    group_sigma_factor: float = 1.15
    floor_sigma_m: float = 0.04
    floor_sigma_share: float = 0.01
    step_share: float = 0.05
    step_m: float = 0.8
    stray_share: float = 0.005
    stray_m: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRules:
    """Thresholds for joining tracks of one person.

    Attributes:
        longest_gap_s: Longest gap between two tracks of one person.
        across_m, along_m: Maximum distance of the second track's start from where the first would be, across the view
            and along it.
        growth_mps: Increase of both limits per second of the gap.
        bone_share: Maximum relative difference of bone lengths.
        pose_m: Maximum mean distance of joints.
        pose_growth_mps: Increase of that limit per second of the gap.
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
    """Thresholds for doubtful tracks.

    Attributes:
        seen_score: Minimum 2D score of a joint that counts as seen.
        max_pause_s: Longest pause within a piece of a track, at least two frames.
        min_seen_s: A piece seen for less is left out where less than min_seen_share of the time within around_s of it
            is seen.
        doubtful_seen_s, doubtful_joint_share: A track is doubtful if it is seen for less, or with a smaller share of
            its joints in the mean.
        jitter_share, jitter_per_s2: A track that lies over another one and jitters is doubtful: joints deviate from
            uniform motion in the median by more than the sum of this share of the body's height in the image and, per
            square of the time between frames, the other, which people's own accelerations reach.
        over_share: Minimum share of the frames of such a track in which it lies over the other.
        over_longer: Minimum ratio of the frames of the other track to those of such a track.
        over_overlap: Minimum share of the smaller of both boxes that they have in common there.
    """

    seen_score: float = 0.3
    max_pause_s: float = 0.12
    min_seen_s: float = 0.25
    around_s: float = 0.5
    min_seen_share: float = 0.33
    doubtful_seen_s: float = 0.5
    doubtful_joint_share: float = 0.5
    jitter_share: float = 0.02
    jitter_per_s2: float = 18.0
    over_share: float = 0.6
    over_longer: float = 2.0
    over_overlap: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimRules:
    """Thresholds for partial frames.

    Attributes:
        seen_score: Minimum 2D score of a joint that counts as seen.
        visible_share: Minimum fraction of visible joints for a person to count as fully visible.
    """

    seen_score: float = 0.3
    visible_share: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyRules:
    """Thresholds of limbs whose 2D contradicts the bone lengths (`pose.world.consistency`).

    Attributes:
        seen_score: Minimum 2D score of a joint that is used.
        window_s: Duration over which medians are taken.
        least_frames: Minimum number of frames in it that show both ends of a bone.
        least_share: Minimum fraction of such frames.
        leg_log_ratio: Minimum absolute logarithm of the ratio of thigh to shank, each relative to its bone length.
        leg_difference: Minimum difference of this logarithm from that of the other leg.
        arm_log_ratio: Minimum of that logarithm for an arm.
        arm_stretch: Minimum length in the image of one of the arm's bones, relative to its bone length.
        leg_sigma_share: Added sigma of a knee, relative to its displacement. With it, about 68 % of the displaced
            joints of training and validation subjects are within sigma.
        arm_sigma_share: Added sigma of an elbow, relative to its displacement.
    """

    seen_score: float = 0.3
    window_s: float = 2.0
    least_frames: int = 3
    least_share: float = 0.3
    leg_log_ratio: float = 0.5
    leg_difference: float = 0.7
    arm_log_ratio: float = 0.8
    arm_stretch: float = 1.2
    leg_sigma_share: float = 0.75
    arm_sigma_share: float = 0.45


@dataclass(frozen=True, slots=True, kw_only=True)
class FootingRules:
    """Thresholds of the test of standing feet with a compensated camera (`pose.world.footing`).

    Attributes:
        width_mps: Width of the kernel of the density of velocities.
        along_share: Factor on velocities along the line of sight, which are less accurate.
        vertical_mps: A foot that rises or falls faster is not in contact.
        window_s: Duration of a window.
        least_s: Minimum duration of samples in a window.
        least_standing: Minimum ratio of the density at rest to the highest density of standing feet.
        least_standing_uncertain: That minimum if the background does not distinguish rotation from translation.
        most_sliding: Maximum fraction of windows with sliding feet.
        max_drift_mps, max_drift_m: Maximum of the most frequent velocity of standing feet over the whole scene, and of
            its product with the duration. A slow translation is constant; errors of feet differ over time.
    """

    width_mps: float = 0.1
    along_share: float = 0.5
    vertical_mps: float = 0.3
    window_s: float = 8.0
    least_s: float = 0.5
    least_standing: float = 0.5
    least_standing_uncertain: float = 0.65
    most_sliding: float = 1 / 3
    max_drift_mps: float = 0.15
    max_drift_m: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class TravelRules:
    """Thresholds of the scale of a carried camera's path (`pose.world.travel_scale`).

    Attributes:
        width_mps: Kernel width of the density of velocities.
        along_share: Factor on velocities along the line of sight, which have larger errors.
        nearest_m, farthest_m: Range of the background's distance.
        block_s: Time over which errors of velocities are correlated.
        most_sigma: Maximum standard deviation of the scale's logarithm, without that of heights.
        agree: Maximum difference of the logarithm for each person and each half of the clip.
        feet_sigma: Standard deviation of the logarithm from errors of the lifter that are constant over the clip.
        height_sigma: Standard deviation of the logarithm of body heights.
    """

    width_mps: float = 0.15
    along_share: float = 0.5
    nearest_m: float = 0.5
    farthest_m: float = 100.0
    block_s: float = 1.0
    most_sigma: float = 0.12
    agree: float = 0.35
    feet_sigma: float = 0.1
    height_sigma: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The thresholds of all steps."""

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
    travel: TravelRules = field(default_factory=TravelRules)
    live: LiveRules = field(default_factory=LiveRules)


RULES = Rules()
