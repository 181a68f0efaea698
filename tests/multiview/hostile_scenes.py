"""Set-ups with cameras, people or moments that several cameras get wrong easily."""

from dataclasses import replace

import numpy as np
import scenes
from setups import (
    LEFT,
    ONE,
    RIGHT,
    SECONDS,
    SETUPS,
    changed,
    filmed,
    joined,
    mirrored,
    moved_camera,
    of_views,
    setup,
    still,
    turned,
)

from pose.multiview.calibrate import Known

# Two cameras at every angle.
for _degrees in (0, 3, 8, 15, 25, 40, 60, 90, 120, 150, 165, 172, 177, 180):
    SETUPS[f"two cameras {_degrees} degrees apart"] = lambda degrees=_degrees: filmed([ONE], (0.0, float(degrees)))
for _degrees in (0, 10, 90, 180):
    SETUPS[f"two people before cameras {_degrees} degrees apart"] = lambda degrees=_degrees: filmed(
        [LEFT, RIGHT], (0.0, float(degrees))
    )


@setup
def _one_clip_twice():
    one = filmed([ONE])
    return replace(one, tracks=[one.tracks[0], changed(one.tracks[0], camera=1)], told=[one.told[0]] * 2)


@setup
def _one_clip_twice_cut_differently():
    one = filmed([ONE])
    cut = one.tracks[0][20:]
    cut = changed(cut, camera=1, times=cut.times - cut.times[0])
    return replace(one, tracks=[one.tracks[0], cut], told=[one.told[0]] * 2)


@setup
def _one_clip_twice_at_another_size():
    one = filmed([ONE])
    small = changed(one.tracks[0], camera=1, keypoints=one.tracks[0].keypoints / 2)
    first = one.told[0]
    half = replace(first, size=(first.size[0] // 2, first.size[1] // 2), focal=first.focal / 2, centre=first.centre / 2)
    return replace(one, tracks=[one.tracks[0], small], told=[first, half])


@setup
def _one_clip_twice_and_mirrored():
    one = filmed([ONE])
    return replace(one, tracks=[one.tracks[0], mirrored(one.tracks[0], one.told[0], 1)], told=[one.told[0]] * 2)


@setup
def _a_mirrored_video():
    one = filmed([ONE])
    return replace(one, tracks=[one.tracks[0], mirrored(one.tracks[1], one.told[1], 1)])


# One camera is mounted strangely.
@setup
def _a_camera_upside_down():
    return rolled(180)


@setup
def _a_camera_on_its_side():
    return rolled(90)


def rolled(degrees):
    views = scenes.cameras(people=[ONE], seed=2, seconds=SECONDS, offset=1.0, sizes=((1920, 1920),))
    views[1] = moved_camera(views[1], rotation=turned(degrees, 2) @ views[1].rotation)
    return of_views(views, [ONE])


@setup
def _a_camera_far_away():
    return filmed([ONE], distance=(12.0, 14.0))


@setup
def _a_camera_above_everybody():
    return filmed([ONE], height=(4.5, 5.0), distance=(2.0, 2.5))


@setup
def _a_long_lens_and_a_wide_one():
    return filmed([ONE], fov=(35.0, 85.0), seed=6)


@setup
def _strong_distortion():
    return filmed([ONE], radial=0.12)


# People.
@setup
def _one_person_who_stands_still():
    return filmed([still(ONE)])


@setup
def _one_person_who_stands_still_between_given_clocks():
    one = filmed([still(ONE)], offset=0.0)
    return replace(one, known=Known(clocks=True))


@setup
def _two_people_who_stand_still():
    return filmed([still(LEFT), still(RIGHT)])


@setup
def _one_stands_and_one_moves():
    return filmed([still(LEFT), RIGHT])


@setup
def _only_a_hand_moves():
    points = still(ONE)
    points[:, 12:14] = ONE[:, 12:14] - ONE[:, 11:12] + points[:, 11:12]
    return filmed([points])


@setup
def _a_motion_that_repeats_itself():
    cycle = ONE[:60].copy()
    smooth = np.concatenate([cycle, cycle[::-1]])
    return filmed([np.concatenate([smooth] * 5)[: int(SECONDS * scenes.RATE)]], offset=0.4)


@setup
def _two_people_in_unison():
    return filmed([scenes.person(1, SECONDS, away=(-0.8, 0.0)), scenes.person(1, SECONDS, away=(0.8, 0.2))])


@setup
def _three_people_in_unison():
    return filmed([scenes.person(1, SECONDS, away=(x, z)) for x, z in ((-0.9, 0.0), (0.9, 0.2), (0.1, 0.9))])


@setup
def _six_people():
    away = [(-1.2, 0.0), (1.2, 0.3), (0.0, 1.0), (0.0, -1.0), (-1.0, -1.2), (1.1, 1.3)]
    return filmed([scenes.person(n + 1, SECONDS, away=one) for n, one in enumerate(away)])


@setup
def _two_people_in_contact():
    return filmed([scenes.person(1, SECONDS, away=(-0.2, 0.0)), scenes.person(5, SECONDS, away=(0.2, 0.0))])


@setup
def _each_person_in_one_camera_only():
    one = filmed([LEFT, RIGHT])
    return replace(one, tracks=[one.tracks[0], one.tracks[3]])


@setup
def _a_person_of_each_camera_and_one_of_both():
    people = [LEFT, RIGHT, scenes.person(8, SECONDS, away=(0.0, 1.2))]
    one = filmed(people)
    return replace(one, tracks=[track for n, track in enumerate(one.tracks) if n not in (1, 5)])


@setup
def _nobody_in_a_camera():
    one = filmed([ONE])
    return replace(one, tracks=one.tracks[:1])


@setup
def _nobody_at_all():
    one = filmed([ONE])
    return replace(one, tracks=[])


@setup
def _three_cameras_in_a_row_with_people_between():
    one = filmed([LEFT, RIGHT], (0.0, 60.0, 120.0))
    return replace(one, tracks=[one.tracks[n] for n in (0, 2, 3, 5)])


@setup
def _a_stranger_is_tracked_where_the_person_was():
    one = filmed([LEFT, RIGHT])
    half = len(one.tracks[2]) // 2
    mixed = joined(one.tracks[2][:half], one.tracks[3][half:])
    return replace(one, tracks=[*one.tracks[:2], mixed])


@setup
def _ids_switch_in_the_middle():
    one = filmed([LEFT, RIGHT])
    half = len(one.tracks[2]) // 2
    first, second = one.tracks[2], one.tracks[3]
    switched = [joined(first[:half], second[half:]), changed(joined(second[:half], first[half:]), number=2)]
    return replace(one, tracks=[*one.tracks[:2], *switched])


@setup
def _a_track_in_ten_pieces():
    one = filmed([ONE])
    rows = np.array_split(np.arange(len(one.tracks[1])), 10)
    pieces = [changed(one.tracks[1][part[:-2]], number=n + 1) for n, part in enumerate(rows)]
    people = {(0, 1): 1} | {(1, n + 1): 1 for n in range(10)}
    return replace(one, tracks=[one.tracks[0], *pieces], people=people)


# Other scenes and moments.
@setup
def _other_people():
    one = filmed([ONE])
    views = scenes.cameras(people=[ONE], seed=2, seconds=SECONDS, offset=1.0)
    return replace(one, tracks=[one.tracks[0], scenes.track(views[1], 1, scenes.person(11, SECONDS), noise_px=2.0)])


@setup
def _two_other_people():
    one = filmed([LEFT, RIGHT])
    other = filmed([scenes.person(11, SECONDS, (-0.9, 0)), scenes.person(12, SECONDS, (0.9, 0.3))])
    return replace(one, tracks=[*one.tracks[:2], *other.tracks[2:]])


@setup
def _one_camera_of_three_shows_another_scene():
    one = filmed([ONE], (0.0, 80.0, 200.0))
    views = scenes.cameras((0.0, 80.0, 200.0), people=[ONE], seed=2, seconds=SECONDS, offset=1.0)
    return replace(one, tracks=[*one.tracks[:2], scenes.track(views[2], 2, scenes.person(11, SECONDS), noise_px=2.0)])


@setup
def _no_moment_in_common():
    one = filmed([ONE], offset=0.0)
    first = one.tracks[0][one.tracks[0].times < 2.3]
    second = one.tracks[1][one.tracks[1].times > 2.6]
    return replace(one, tracks=[first, changed(second, times=second.times - second.times[0])])


@setup
def _no_moment_in_common_between_given_clocks():
    one = filmed([ONE], offset=0.0)
    return replace(one, tracks=[one.tracks[0][:60], one.tracks[1][-60:]], known=Known(clocks=True))


@setup
def _half_a_second_in_common():
    one = filmed([ONE], offset=0.0)
    first, second = one.tracks[0], one.tracks[1]
    return replace(one, tracks=[first[first.times < 2.5], second[second.times > 2.0]])


@setup
def _a_video_played_backwards():
    one = filmed([ONE])
    back = one.tracks[1][::-1]
    return replace(one, tracks=[one.tracks[0], changed(back, times=one.tracks[1].times)])


@setup
def _slow_motion():
    one = filmed([ONE])
    return replace(one, tracks=[one.tracks[0], changed(one.tracks[1], times=4 * one.tracks[1].times)])


@setup
def _a_frame_rate_that_is_wrong_by_a_fifth():
    one = filmed([ONE])
    return replace(one, tracks=[one.tracks[0], changed(one.tracks[1], times=1.2 * one.tracks[1].times)])


@setup
def _ntsc_beside_pal():
    one = filmed([ONE], rates=(25.0, 59.94))
    return one


@setup
def _frames_at_irregular_times():
    one = filmed([ONE])
    rng = np.random.default_rng(3)
    kept = np.sort(rng.choice(len(one.tracks[1]), len(one.tracks[1]) // 2, replace=False))
    return replace(one, tracks=[one.tracks[0], one.tracks[1][kept]])


@setup
def _a_clock_far_ahead():
    one = filmed([ONE])
    truth = [one.truth[0], replace(one.truth[1], offset=one.truth[1].offset - 4000.0)]
    return replace(one, tracks=[one.tracks[0], changed(one.tracks[1], times=one.tracks[1].times + 4000.0)], truth=truth)


@setup
def _given_clocks_that_are_wrong_by_a_second():
    one = filmed([ONE])
    told = [one.told[0], replace(one.told[1], offset=one.truth[1].offset + 1.0)]
    return replace(one, told=told, known=Known(clocks=True))


@setup
def _given_clocks_that_are_wrong_by_a_fifth_of_a_second():
    one = filmed([ONE])
    told = [one.told[0], replace(one.told[1], offset=one.truth[1].offset + 0.2)]
    return replace(one, told=told, known=Known(clocks=True))
