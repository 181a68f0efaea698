"""Thresholds of the processing steps that give world coordinates. `pose.world.clean` defines the order of the steps.

They are constants and no settings: a user sets what `pose.config` has. The classes only group and describe them.

All values were chosen on training subjects of motion capture data (docs/studies/world.md), none on test subjects. The
suffix of a name gives its unit: `_m`, `_s`, `_mps` (m/s), `_hz`, `_mm`, `_share` (a ratio), `_degrees`, `_rad`. Names
with `log` are natural logarithms. The prefixes `min_` and `max_` denote bounds.
"""

MIN_SCORE = 0.3  # 2D score from which a joint counts as detected


class DepthRules:
    """Thresholds of the step that estimates the distance between camera and person."""

    # Weight of the least-squares fit to the 2D joints in the distance of a frame. The lifter's distance has the
    # remaining weight.
    fit_weight: float = 0.25
    pixel_sigma_share: float = 0.01  # standard deviation of a 2D joint, as a share of the body's extent
    # Factor on the variance of one frame's distance, because errors of neighbouring frames are correlated.
    variance_factor: float = 10.0
    # Distance between a detected and a lifted joint at which the weight of the joint is halved, as a share of the
    # body's extent.
    outlier_share: float = 0.25
    agility_mps15: float = 1.0  # process noise of the speed along the viewing direction, m/s^1.5
    speed_memory_s: float = 1.0  # time constant with which the speed along the viewing direction decays
    # Relative standard deviation of distances if the field of view is assumed. Common lenses have fields of view of 35
    # to 90 degrees.
    assumed_focal_sigma_share: float = 0.35


DEPTH = DepthRules()


class GapRules:
    """Thresholds of gap filling."""

    max_gap_s: float = 0.5  # longest gap that is filled. Motion is not smoothed across longer gaps


GAPS = GapRules()


class SmoothRules:
    """Cut-off frequencies of the smoothing filters."""

    min_cutoff_hz: float = 6.0  # smallest cut-off of the zero-phase filter for recorded motion
    max_cutoff_hz: float = 12.0  # largest one
    fast_share: float = 0.2  # share of the fastest parts, which decide on the cut-off of a joint group
    live_cutoff_hz: float = 8.0  # cut-off of the live One-Euro filter for joints at rest
    live_cutoff_hz_per_mps: float = 40.0  # increase of `live_cutoff_hz` per m/s of speed
    live_root_cutoff_hz: float = 1.5  # cut-off of the live One-Euro filter for the pelvis at rest
    live_root_cutoff_hz_per_mps: float = 6.0  # increase of `live_root_cutoff_hz` per m/s of speed
    live_speed_cutoff_hz: float = 6.0  # cut-off of the low-pass filter for the speed in the One-Euro filters


SMOOTH = SmoothRules()


class GravityRules:
    """Thresholds of the estimate of the vertical."""

    # Horizontal distance from the ankles forward to the middle of the feet, as a share of the height of the centre of
    # mass above the ankles.
    feet_ahead_share: float = 0.09
    # Minimum height of the centre of mass above the ankles, as a share of the person's maximum. Frames with a lower
    # centre of mass are ignored.
    min_upright_share: float = 0.95
    # Maximum angle between a body and the camera's vertical. Bodies with a larger angle are ignored.
    max_tilt_degrees: float = 50.0
    body_sigma_rad: float = 0.04  # standard deviation of the vertical from one person in one posture
    # Additional standard deviation for a person seen for one second. The value is divided by the square root of the
    # duration in s.
    posture_sigma_rad: float = 0.07
    max_standing_speed_mps: float = 0.4  # maximum speed of an ankle at which the foot may be standing
    foot_height_sigma_m: float = 0.04  # standard deviation of the height of standing feet above their plane
    foot_spread_m: float = 0.2  # standard deviation of foot positions along the floor that depth errors alone cause
    max_plane_distance_m: float = 0.06  # maximum distance from the plane for feet that stand on it
    correlation_s: float = 0.5  # time over which errors of a foot are correlated
    # Maximum standard deviation of the vertical. Above it, the vertical is reported as unknown.
    max_sigma_degrees: float = 12.0


GRAVITY = GravityRules()


class FloorRules:
    """Thresholds of the estimate of the floor."""

    max_standing_speed_mps: float = 0.5  # maximum speed of a standing foot
    # Percentile of the heights of standing feet that gives the floor. Errors can place feet below the floor.
    lowest_percentile: float = 20.0
    # Maximum distance between a person's own floor and the common floor for the person to be moved onto the common
    # floor. A person with a larger distance stands on an object.
    max_step_m: float = 0.3
    min_score: float = MIN_SCORE  # minimum 2D score of an ankle


FLOOR = FloorRules()


class ContactRules:
    """Thresholds of foot contacts."""

    contact_on_speed_mps: float = 0.5  # ankle speed below which a contact begins
    contact_off_speed_mps: float = 0.7  # ankle speed above which a contact ends
    max_contact_height_m: float = 0.16  # maximum height of the ankle above its height in standing
    max_flight_s: float = 0.6  # maximum duration of a flight phase
    min_contact_s: float = 0.1  # minimum duration of a contact, and of a pause between two contacts
    speed_width_mps: float = 0.15  # width of the logistic function that converts speed to contact probability
    height_width_m: float = 0.02  # width of the logistic function that converts height to contact probability


CONTACTS = ContactRules()


class FootRules:
    """Thresholds of the foot-locking step."""

    # Maximum motion of a standing foot along x, y and z of the world within `slide_window_s`. Over a whole contact the
    # limit is three times as large. z is the viewing direction, in which depth drifts.
    max_slide_m: tuple[float, float, float] = (0.2, 0.2, 0.4)
    slide_window_s: float = 1.0  # time window of `max_slide_m`
    # Standard deviation of a standing foot's motion between two frames at `rate_fps`.
    contact_step_sigma_m: float = 0.004
    rate_fps: float = 30.0  # frame rate to which the standard deviations per frame refer
    # Standard deviation of the correction of the body's position across the ray from the camera, up across it, and
    # along it. The 2D shows the first two, so a correction must not move the person in the image.
    path_sigma_m: tuple[float, float, float] = (0.01, 0.01, 0.2)
    step_sigma_m: float = 0.006  # standard deviation of the change of this correction between two frames at `rate_fps`
    max_foot_shift_m: float = 0.05  # maximum correction of a foot
    # Share of the correction along the leg that is made by bending the leg. The remaining part is omitted, because the
    # knee of a nearly straight leg moves far for a small change of the leg's length.
    bend_share: float = 0.2
    fade_s: float = 0.15  # duration over which a correction is faded in and out


FOOT_LOCK = FootRules()


class SizeRules:
    """Parts of the body height that the lifter does not give, and its uncertainty in live processing."""

    ankle_height_m: float = 0.08  # height of the ankle joint above the floor
    crown_height_m: float = 0.10  # distance from the head joint to the top of the head
    live_sigma_share: float = 0.035  # relative standard deviation of the height in live processing


SIZE = SizeRules()


class JoinRules:
    """Thresholds for joining tracks of one person."""

    max_gap_s: float = 3.0  # longest gap between two tracks of one person
    # Maximum distance, perpendicular to the viewing direction, between the start of the second track and the
    # extrapolated first track.
    max_across_m: float = 0.3
    max_along_m: float = 0.6  # maximum distance along the viewing direction between the same two positions
    position_growth_mps: float = 0.5  # increase of `max_across_m` and `max_along_m` per second of the gap
    max_size_difference_share: float = 0.1  # maximum relative difference between the sums of the bone lengths
    # Maximum mean joint distance between the last pose before the gap and the first after it.
    max_pose_distance_m: float = 0.15
    pose_growth_mps: float = 0.15  # increase of `max_pose_distance_m` per second of the gap


JOINS = JoinRules()


class TrackRules:
    """Thresholds for doubtful tracks, which may not show a real person.

    A piece is a part of a track without a long pause. A track covers another one if their boxes overlap in most frames.
    A covering track that jitters is doubtful.
    """

    min_score: float = MIN_SCORE  # minimum 2D score of a joint that counts as detected
    max_pause_s: float = 0.12  # longest pause within a piece. At low frame rates the limit is 2.5 frame intervals.
    # Minimum duration of a piece, with frames weighted by their fraction of detected joints. A shorter piece is dropped
    # if the track is detected too rarely around it (`around_s`, `min_seen_share`).
    min_seen_s: float = 0.25
    around_s: float = 0.5  # time before and after a short piece in which detections are counted
    # Minimum fraction of this time with detections. A whole track with a smaller fraction is doubtful.
    min_seen_share: float = 0.33
    doubtful_seen_s: float = 0.5  # duration of detections below which a track is doubtful
    doubtful_joint_share: float = 0.5  # mean fraction of detected joints below which a track is doubtful
    # Maximum median second difference of joint positions, as a share of the body's height in the image. A track with a
    # larger value jitters.
    max_jitter_share: float = 0.02
    # Increase of this limit per squared frame interval, s^-2, for accelerations of people.
    jitter_growth_per_s2: float = 18.0
    # Minimum fraction of the frames of a covering track in which the boxes overlap.
    min_overlap_frame_share: float = 0.6
    # Minimum number of frames of the covered track, relative to that of the covering track.
    min_length_ratio: float = 2.0
    min_box_overlap_share: float = 0.5  # minimum intersection of overlapping boxes, as a share of the smaller box


TRACKS = TrackRules()


class TrimRules:
    """Thresholds for frames that show only a part of a person."""

    min_score: float = MIN_SCORE  # minimum 2D score of a joint that counts as visible
    min_visible_share: float = 0.7  # minimum fraction of visible joints for a person to count as fully visible


TRIM = TrimRules()


class ConsistencyRules:
    """Thresholds for limbs whose detected joints contradict the bone lengths (`pose.world.consistency`).

    The relative length of a bone is its length in the image divided by its length in 3D. The log ratio of a limb is the
    logarithm of the ratio of two relative lengths: thigh to shank, or upper arm to forearm.
    """

    min_score: float = MIN_SCORE  # minimum 2D score of a joint that is used
    window_s: float = 2.0  # duration of the window of the sliding medians
    min_frames: int = 3  # minimum number of frames in a window that show both ends of a bone
    min_frame_share: float = 0.3  # minimum fraction of frames in a window that show both ends of a bone
    min_leg_log_ratio: float = 0.5  # minimum absolute log ratio of a contradictory leg
    # Minimum difference between the log ratios of a contradictory leg and the other leg.
    min_leg_log_difference: float = 0.7
    min_arm_log_ratio: float = 0.8  # minimum absolute log ratio of a contradictory arm
    min_arm_stretch_ratio: float = 1.2  # minimum relative length of one bone of a contradictory arm
    # Added sigma of a knee, relative to its displacement. About 68 % of the displaced joints of training and validation
    # subjects are then within sigma.
    leg_sigma_share: float = 0.75
    arm_sigma_share: float = 0.45  # added sigma of an elbow, relative to its displacement


CONSISTENCY = ConsistencyRules()


class FootingRules:
    """Thresholds of the test whether standing feet are at rest after compensation of the camera's motion.

    `pose.world.footing` describes the test. It uses a kernel density of the velocities of feet.
    """

    kernel_width_mps: float = 0.1  # standard deviation of the kernel
    along_share: float = 0.5  # factor on velocities along the line of sight, which are less accurate
    max_vertical_mps: float = 0.3  # maximum vertical speed of a foot in contact
    window_s: float = 8.0  # duration of a time window
    min_samples_s: float = 0.5  # minimum duration of samples in a window
    min_rest_density_share: float = 0.5  # minimum ratio of the density at zero velocity to the highest density
    # Minimum of the same ratio if the background does not distinguish rotation from translation.
    min_rest_density_share_uncertain: float = 0.65
    max_sliding_share: float = 1 / 3  # maximum fraction of windows in which feet slide
    # Maximum of the drift, the most frequent speed of standing feet over the whole scene. A slow translation of the
    # camera causes a constant drift, whereas errors of feet vary over time.
    max_drift_mps: float = 0.15
    # Maximum product of drift and duration. The test fails only if this and `max_drift_mps` are exceeded.
    max_drift_m: float = 0.9


FOOTING = FootingRules()


class TravelRules:
    """Thresholds of the scale of a carried camera's path (`pose.world.carried`)."""

    kernel_width_mps: float = 0.15  # kernel width of the density of velocities
    along_share: float = 0.5  # factor on velocities along the line of sight, which have larger errors
    min_background_m: float = 0.5  # minimum distance of the background
    max_background_m: float = 100.0  # maximum distance of the background
    correlation_s: float = 1.0  # time over which errors of velocities are correlated
    # Maximum standard deviation of the log scale, without `feet_log_sigma` and `height_log_sigma`.
    max_log_sigma: float = 0.12
    # Maximum difference between the log scale of the clip and that of a person or half the clip.
    max_log_difference: float = 0.35
    # Standard deviation of the log scale from lifter errors that are constant over the clip.
    feet_log_sigma: float = 0.1
    height_log_sigma: float = 0.05  # standard deviation of the logarithm of body heights


TRAVEL = TravelRules()


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
    # (`pose.world.footing`).
    min_footing_s: float = 3.0
    min_sliding_s: float = 2.0  # time for which standing feet must slide before world coordinates end
    footing_update_interval_s: float = 0.5  # interval between two decisions whether the camera translates
    # Maximum duration of a camera motion for which neither feet nor background show that it is a pure rotation.
    max_unsupported_s: float = 5.0


LIVE = LiveRules()
