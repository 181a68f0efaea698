"""Every threshold of the steps from a lifted track to a person who stands in the world; `pose.world.clean` has their
order. All were chosen on the training subjects of the motion capture (docs/studies/world.md says how), none on the
test's.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRules:
    """fitted: share of what fits the picture in a frame's depth; the rest is the lifter's. picture: standard deviation
    of a seen joint across the view, as a share of the body's spread. doubt: by how much the variance of one frame's
    depth is multiplied, since errors of neighbouring frames are alike. outlier: share of the body's spread by which a
    joint may be off where the lifter puts it, and still count half. agility: m/s^1.5, what drives the speed towards and
    away from the camera. settle: s within which such a speed is forgotten. lens: share by which
    distances err where the field of view is assumed: lenses that people use span 35 to 90 degrees.
    """

    fitted: float = 0.25
    picture: float = 0.01
    doubt: float = 10.0
    outlier: float = 0.25
    agility: float = 1.0
    settle: float = 1.0
    lens: float = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRules:
    """longest: s of a gap that is filled; across a longer one nothing is filled and nothing smoothed."""

    longest: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothRules:
    """hertz: cut-off of the zero-phase filter. live_hertz, live_slope: of One-Euro, live: its cut-off at rest, and what
    is added to it for each m/s; root_hertz, root_slope: the same for the pelvis. live_speed_hertz: cut-off of the speed
    itself.
    """

    hertz: float = 6.0
    live_hertz: float = 8.0
    live_slope: float = 40.0
    root_hertz: float = 1.5
    root_slope: float = 6.0
    live_speed_hertz: float = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityRules:
    """feet_ahead: the middle of the feet lies so far ahead of the ankles, as a share of the height of the body's
    centre above them. stretched: frames count in which that height is above this share of its greatest. most_tilt:
    degrees from the camera's vertical beyond which a body says nothing. body: the direction's error, radians, of one
    person in one posture. changing: more of it, radians, for who was seen for a second only, falling with the root of
    the seconds. still: m/s, slower feet may stand. height: m, how far standing feet are off their plane. spread: m, how
    far they are spread over the floor by errors alone. band: m from the plane beyond which feet do not stand on it.
    lasting: s for which that error stays the same. trusted: degrees of the answer's own uncertainty beyond which it is
    unknown.
    """

    feet_ahead: float = 0.09
    stretched: float = 0.95
    most_tilt: float = 50.0
    body: float = 0.04
    changing: float = 0.07
    still: float = 0.4
    height: float = 0.04
    spread: float = 0.2
    band: float = 0.06
    lasting: float = 0.5
    trusted: float = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRules:
    """slow: m/s, slower feet stand. low: per cent of them that may be lower: some err. apart: m between the common
    floor and a person's own up to which the person is brought to the common one; beyond, they stand on something.
    seen: score of an ankle above which the picture shows it.
    """

    slow: float = 0.5
    low: float = 20.0
    apart: float = 0.3
    seen: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRules:
    """on, off: m/s of the ankle below which contact begins, and above which it ends. low: m of the ankle above
    where it is when standing. aloft: s that nobody flies before or after the lowest moment of a jump. shortest: s
    of a contact, and of the pause between two. soft: m/s, and soft_height: m, over which the probability changes.
    """

    on: float = 0.5
    off: float = 0.7
    low: float = 0.16
    aloft: float = 0.6
    shortest: float = 0.1
    soft: float = 0.15
    soft_height: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class FootRules:
    """slide: m (x, y, z of the world) that a foot may go within `within` s and still stand; in a whole stance thrice
    as far. z is the direction of the view, in which depth drifts. step: m, how exactly standing feet stay, from frame
    to frame at `rate` a second. path: m (x, y, z), how exactly the body's path is known. shake: m, of its steps where
    no foot says anything. most: m that a foot may be moved to where it is held. bend: share of that way towards the hip
    or away from it which the leg takes by bending; the rest of it turns the leg only, since a leg that is nearly
    straight moves its knee far for a little less length. fade: s over which that comes and goes.
    """

    slide: tuple[float, float, float] = (0.2, 0.2, 0.4)
    within: float = 1.0
    step: float = 0.004
    rate: float = 30.0
    path: tuple[float, float, float] = (0.03, 0.05, 0.2)
    shake: float = 0.006
    most: float = 0.05
    bend: float = 0.2
    fade: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRules:
    """ankle, crown: m of a body above the head joint and below the ankle. error: the lifter's size, as a share: one
    standard deviation of heights and distances, over the training and validation subjects of both data sets.
    """

    ankle: float = 0.08
    crown: float = 0.10
    error: float = 0.035


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRules:
    """What is different without a future (`pose.world.live`). settle: s of clear view after which a bone keeps its
    length. clear: mm, sigma of joints that are clearly seen. unsettled: share by which a height errs, besides the
    lifter's own error, in the first second. room, room_sigma: m, where somebody may be of whom nothing is known.
    nearest: m. on, off: m/s as in `ContactRules`, of speeds that are taken over the last `speed_over` s. every: s
    between poses that are remembered for the world, for `memory` s, of at most `most_people`. look: s between two looks
    at them, look_first: in the beginning. level: s between two looks at the last `recent` s for the floor under each
    person. blend: s within which what is shown goes to what was found. away: s after which somebody is forgotten.
    """

    settle: float = 10.0
    clear: float = 30.0
    unsettled: float = 0.05
    room: float = 4.0
    room_sigma: float = 10.0
    nearest: float = 0.2
    on: float = 0.7
    off: float = 0.9
    speed_over: float = 0.2
    every: float = 0.1
    memory: float = 60.0
    most_people: int = 16
    look: float = 3.0
    look_first: float = 0.25
    level: float = 0.5
    recent: float = 5.0
    blend: float = 1.0
    away: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRules:
    """longest: s between two tracks of one person. across, along: m that the second may begin from where the first
    would be, across the view and in its direction, and speed: m/s that either grows by. size: share by which bones may
    differ. pose: m, in the mean over joints, and turning: m/s that it grows by. fleeting: s; a track that is shorter,
    and does not touch the ends of its scene, shows nobody.
    """

    longest: float = 3.0
    across: float = 0.3
    along: float = 0.6
    speed: float = 0.5
    size: float = 0.1
    pose: float = 0.15
    turning: float = 0.15
    fleeting: float = 0.25


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
    joins: JoinRules = field(default_factory=JoinRules)
    live: LiveRules = field(default_factory=LiveRules)


RULES = Rules()
