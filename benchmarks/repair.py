"""What repair undoes, what it breaks, and what that does to the lifted 3D: the tables of docs/studies/repair.md.

    python benchmarks/repair.py --mocap clips.npz --shared ../shared --out docs/studies/repair.md

Swaps are injected into real sequences in bursts of 0.12 s in the mean, for about 5 % of the time each in the legs, in
the arms and in both together. Every swapped frame counts, also where left and right are in one place. There are two
kinds of sequences:

- what four networks see in the clips. What is left and what is right is the opinion of the median of the other three
  networks (benchmarks/detector_errors.py): frames in which a network itself had swapped a limb count as swapped.
- recorded people (every fourth clip of the test subjects) before virtual cameras, with the errors of
  `pose_datasets.errors` but no swaps of its own.

A front taken for a back swaps the whole body for 1.2 to 5 s: one such episode in each recorded sequence of more
than four seconds, in the clips one about every twelve seconds, four times over. There all of repair is asked, and a
frame counts as swapped where legs and arms both are. The networks' keypoints are in their own skeletons there, and
their faces stay what they are. "one end, live" is the search for whole bodies alone, told at once without asking for
the other end or the face: all that a stream can know where no face speaks.

The lifted 3D is that of the shipped lifters, on the same people with all errors, swaps at their natural rate included,
and once with the injected swaps besides.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from detector_errors import CLIPS, NETWORKS, PAIRS, SKELETONS, Track, publish, swapped, watch_all
from numpy.typing import NDArray
from pose_datasets.errors import ErrorConfig, rederive
from pose_datasets.filming import FilmConfig
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches

from pose.lifting.repair.person import FULL_LOOKAHEAD_S, LIMBS_LOOKAHEAD_S, PersonRepair, repair
from pose.lifting.repair.swaps import BODY_RULES, SwapFinder, body_pairs, limb_pairs, limb_rules
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.sequences import LiftBatch, Sequence2D
from pose.structures.skeletons import H36M17, get_skeleton
from pose.training.measure import measure

Mask = NDArray[np.bool_]
LOOKAHEADS = {"whole": np.inf, f"{LIMBS_LOOKAHEAD_S:.1f} s": LIMBS_LOOKAHEAD_S, "0.3 s": 0.3, "live": 0.0}
ONE_END = "one end, live"
BODY_LOOKAHEADS = {"whole": np.inf, f"{FULL_LOOKAHEAD_S:.1f} s": FULL_LOOKAHEAD_S, "live": 0.0, ONE_END: 0.0}
ANY_CAMERA = Camera.of((1, 1))  # repair does not look at it
SHARE = 0.05  # of the time, for each kind of swap
SECONDS = 0.12  # of a burst, in the mean
SHORTEST = 1.2  # s that a front is taken for a back
APART = 1.5, 8.0  # s between two such episodes, at least and beyond that in the mean
REPEATS = 4  # of each sequence, with other episodes
SWAPPED = "detector, injected swaps"
LEAST_SCORES = (0.0, 0.05, 0.2)


def bursts(rng: np.random.Generator, times: NDArray[np.float64]) -> Mask:
    """(T,) True in bursts of at least one frame."""
    inside = np.zeros(len(times), bool)
    start = times[0]
    while True:
        start += rng.exponential(SECONDS * (1 - SHARE) / SHARE)
        first = int(np.searchsorted(times, start))
        if first == len(times):
            return inside
        end = start + rng.exponential(SECONDS)
        inside[first] = True
        inside |= (times >= start) & (times < end)
        start = end


def injection(rng: np.random.Generator, times: NDArray[np.float64]) -> Mask:
    """(T, 2) where legs and arms are swapped: each alone, and both together."""
    legs, arms, both = (bursts(rng, times) for _ in range(3))
    return np.stack([legs ^ both, arms ^ both], axis=1)


def swap_limbs(sequence: Sequence2D, swapped: Mask) -> Sequence2D:
    """The sequence with legs and arms swapped in the frames of (T, 2). A face stays as it is."""
    xy, scores = sequence.keypoints.copy(), sequence.scores.copy()
    for limb, pairs in enumerate(limb_pairs(get_skeleton(sequence.skeleton)).values()):
        rows = np.flatnonzero(swapped[:, limb])[:, None]
        here, there = pairs.T.ravel(), pairs.T[::-1].ravel()
        xy[rows, here], scores[rows, here] = xy[rows, there], scores[rows, there]
    return replace(sequence, keypoints=xy, scores=scores)


def found(sequence: Sequence2D, lookahead: float) -> Mask:
    """(T, 2) where legs and arms are taken for swapped."""
    return told(SwapFinder(list(limb_pairs(H36M17).values()), limb_rules(lookahead), lookahead), sequence)


def told(finder: SwapFinder, sequence: Sequence2D) -> Mask:
    """(T, G) what the finder says of its G limbs."""
    rows = []
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True):
        finder.push(keypoints, scores, time)
        rows += finder.take(time)
    return np.array(rows + finder.take(np.inf))


def count(sequences: Iterable[tuple[Sequence2D, Mask]], lookahead: float) -> NDArray[np.int64]:
    """(2, 4) for legs and arms: swapped frames, undone ones, other frames, those that were swapped wrongly."""
    rng = np.random.default_rng(0)
    total = np.zeros((2, 4), np.int64)
    for sequence, own in sequences:
        injected = injection(rng, sequence.times)
        wrong = injected ^ own
        answer = found(swap_limbs(sequence, injected), lookahead)
        total += np.stack([wrong.sum(0), (answer & wrong).sum(0), (~wrong).sum(0), (answer & ~wrong).sum(0)], axis=1)
    return total


def episodes(rng: np.random.Generator, times: NDArray[np.float64], apart: float) -> Mask:
    """(T,) True where a front is taken for a back. apart: s between two of these, in the mean; inf: only one."""
    inside = np.zeros(len(times), bool)
    longest = min(BODY_RULES.max_swap_s, float(times[-1] - times[0]) - 2 * APART[0])
    start = times[0] + APART[0]
    while longest > SHORTEST:
        lasts = rng.uniform(SHORTEST, longest)
        free = times[-1] - APART[0] - lasts - start
        if free < 0:
            break
        start += rng.uniform(0, free if np.isinf(apart) else min(free, apart))
        inside |= (times >= start) & (times < start + lasts)
        if np.isinf(apart):
            break
        start += lasts + APART[0] + rng.exponential(apart)
    return inside


def swapped_bodies(sequence: Sequence2D, label: str, lookahead: float) -> Mask:
    """(T,) where the whole body is swapped, by one of the ways of `BODY_LOOKAHEADS`."""
    return bodies_at_once(sequence) if label == ONE_END else repaired_bodies(sequence, lookahead)


def repaired_bodies(sequence: Sequence2D, lookahead: float) -> Mask:
    """(T,) where repair swaps legs and arms."""
    person, rows = PersonRepair(get_skeleton(sequence.skeleton), lookahead), []
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True):
        person.push(keypoints, scores, time)
        rows += person.take(time)
    return np.array([row.swapped.all() for row in rows + person.take(np.inf)])


def bodies_at_once(sequence: Sequence2D) -> Mask:
    """(T,) where one end says that the body is swapped, as soon as it is seen."""
    pairs = body_pairs(get_skeleton(sequence.skeleton))
    return told(SwapFinder([pairs], replace(BODY_RULES, needs_both_ends=False), 0.0), sequence)[:, 0]


def body_table(groups: dict[str, tuple[list[tuple[Sequence2D, Mask]], float]]) -> list[str]:
    """groups: name -> sequences with the limbs that the network swapped itself, and s between episodes."""
    rows = ["| sequences | look-ahead | swapped frames | undone | false | false, nothing injected |"]
    rows.append("|" + "---|" * 6)
    for name, (sequences, apart) in groups.items():
        for label, lookahead in BODY_LOOKAHEADS.items():
            rng = np.random.default_rng(0)
            total, clean = np.zeros(4, np.int64), []
            for sequence, own in sequences:
                known = ~own.any(axis=1)
                clean.append(swapped_bodies(sequence, label, lookahead)[known])
                for _ in range(REPEATS):
                    inside = episodes(rng, sequence.times, apart)
                    if not inside.any():
                        break
                    turned = swap_limbs(sequence, np.stack([inside, inside], axis=1))
                    answer = swapped_bodies(turned, label, lookahead)
                    wrong, right = inside & known, ~inside & known
                    total += np.array([wrong.sum(), (answer & wrong).sum(), right.sum(), (answer & right).sum()])
            wrong, undone, right, false = total
            rows.append(
                f"| {name} | {label} | {wrong} | {100 * undone / wrong:.1f} % | {100 * false / right:.2f} % "
                f"| {100 * np.concatenate(clean).mean():.2f} % |"
            )
            print(rows[-1], flush=True)
    return rows


def own_swaps(sequences: list[tuple[Sequence2D, Mask]]) -> list[str]:
    """What repair does to the sequences as the networks gave them."""
    found_ones = np.concatenate([found(sequence, np.inf) for sequence, _ in sequences])
    real = np.concatenate([own for _, own in sequences])
    rows = [
        "| limb | frames | swapped by the network | of these undone | swapped wrongly |",
        "|---|---|---|---|---|",
    ]
    for limb, name in enumerate(PAIRS):
        swaps, answer = real[:, limb], found_ones[:, limb]
        wrong = (answer & ~swaps).sum()
        rows.append(
            f"| {name} | {len(swaps)} | {swaps.sum()} | {(answer & swaps).sum()} | {wrong} "
            f"({100 * wrong / (~swaps).sum():.2f} %) |"
        )
    return rows


def of_networks(tracks: list[Track], native: bool = False) -> dict[str, list[tuple[Sequence2D, Mask]]]:
    """For each network its sequences, and where it swapped limbs itself. native: in its own skeleton, not in
    Human3.6M-17.
    """
    sequences: dict[str, list[tuple[Sequence2D, Mask]]] = {name: [] for name in NETWORKS}
    for track in tracks:
        for n, name in enumerate(NETWORKS):
            own = np.stack([swapped(track, n, pairs) for pairs in PAIRS.values()], axis=1)
            xy, scores = (
                track.native[n] if native else (track.xy[n].astype(np.float32), track.scores[n].astype(np.float32))
            )
            skeleton = SKELETONS[n] if native else H36M17
            sequence = Sequence2D(xy, scores, track.times.astype(float), ANY_CAMERA, skeleton.name)
            sequences[name].append((sequence, own))
    return sequences


def of_recordings(clips: list[Clip], fps: float) -> list[tuple[Sequence2D, Mask]]:
    config = SynthesisConfig(film=FilmConfig(errors=ErrorConfig(swap_rate=0)))
    batches = evaluation_batches(clips, condition="detector", fps=fps, config=config)
    rows = [row for batch in batches for row in rows_of(batch)]
    return [(row, np.zeros((len(row), 2), bool)) for row in rows if len(row) > 1]


def rows_of(batch: LiftBatch) -> Iterator[Sequence2D]:
    for i, valid in enumerate(batch.valid):
        camera = Camera.of((int(batch.image_size[i, 0]), int(batch.image_size[i, 1])))
        yield Sequence2D(batch.keypoints[i][valid], batch.scores[i][valid], batch.times[i][valid], camera, "h36m17")


def swap_table(groups: dict[str, list[tuple[Sequence2D, Mask]]]) -> list[str]:
    rows = [
        "| sequences | look-ahead | legs: swapped frames | undone | false | arms: frames | undone | false |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, sequences in groups.items():
        rows += [swap_row(name, label, count(sequences, lookahead)) for label, lookahead in LOOKAHEADS.items()]
    return rows


def swap_row(name: str, label: str, counts: NDArray[np.int64]) -> str:
    cells = []
    for wrong, undone, right, false in counts:
        cells += [str(wrong), f"{100 * undone / wrong:.1f} %", f"{100 * false / right:.2f} %"]
    row = f"| {name} | {label} | " + " | ".join(cells) + " |"
    print(row, flush=True)
    return row


def injected(batch: LiftBatch, rng: np.random.Generator) -> LiftBatch:
    """The batch with injected swaps."""
    xy, scores = batch.keypoints.copy(), batch.scores.copy()
    for i, sequence in enumerate(rows_of(batch)):
        swapped = swap_limbs(sequence, injection(rng, sequence.times))
        xy[i, batch.valid[i]], scores[i, batch.valid[i]] = swapped.keypoints, swapped.scores
    return replace(batch, keypoints=xy, scores=scores)


def repaired(batch: LiftBatch, lookahead: float, min_score: float) -> LiftBatch:
    """The batch as the lifter sees it behind the repair."""
    xy, scores = batch.keypoints.copy(), batch.scores.copy()
    for i, sequence in enumerate(rows_of(batch)):
        fixed = repair(sequence, lookahead=lookahead, min_score=min_score)
        xy[i, batch.valid[i]], scores[i, batch.valid[i]] = fixed.keypoints, fixed.scores
    derived_xy, derived_scores = xy[batch.derived], scores[batch.derived]
    rederive(derived_xy, derived_scores)
    xy[batch.derived], scores[batch.derived] = derived_xy, derived_scores
    return replace(batch, keypoints=xy, scores=scores)


def lift_table(clips: list[Clip]) -> list[str]:
    rows = [
        "| lifter | 2D | repair | MPJPE, mm | P-MPJPE, mm | acceleration, mm/frame² |",
        "|---|---|---|---|---|---|",
    ]
    for name, lookahead in (("offline", np.inf), ("stream", 0.0)):
        network = TorchLifter.load(name).network
        for condition in ("detector", "noisy", SWAPPED):
            batches = list(evaluation_batches(clips, condition=condition.split(",")[0]))
            if condition == SWAPPED:
                rng = np.random.default_rng(0)
                batches = [injected(batch, rng) for batch in batches]
            variants = {"none": batches}
            for least in LEAST_SCORES if (name, condition) == ("offline", "detector") else LEAST_SCORES[1:2]:
                label = "swaps and outliers" if name == "offline" else "swaps"
                if least:
                    label += f", scores below {least:g} masked"
                variants[label] = [repaired(batch, lookahead, least) for batch in batches]
            for label, variant in variants.items():
                f = measure(network, variant)
                rows.append(
                    f"| {name} | {condition} | {label} | {f.mpjpe:.2f} | {f.p_mpjpe:.2f} | {f.acceleration:.2f} |"
                )
                print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", type=Path, required=True, help="the file that pose-prepare mocap wrote")
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--out", type=Path, help="a Markdown file whose tables are replaced; default: print them")
    parser.add_argument("--clips", nargs="+", choices=CLIPS, default=CLIPS, help="what the networks see; default: all")
    parser.add_argument(
        "--every", type=int, default=4, metavar="N", help="every Nth recorded clip; default: %(default)s"
    )
    options = parser.parse_args()
    clips = split(load_clips(options.mocap), "test")[:: options.every]
    tracks = watch_all(options.shared, options.clips)
    networks = of_networks(tracks)
    everyone = [sequence for sequences in networks.values() for sequence in sequences]
    groups = networks | {"all four networks": everyone}
    groups |= {f"recorded people, {fps} fps": of_recordings(clips, fps) for fps in (30, 10)}
    sections = {
        "Injected swaps": swap_table(groups),
        "Front-back confusion": body_table(
            {name: (sequences, APART[1]) for name, sequences in of_networks(tracks, native=True).items()}
            | {name: (groups[name], np.inf) for name in groups if name.startswith("recorded")}
        ),
        "The networks' own swaps": own_swaps(everyone),
        "Lifted 3D": lift_table(clips),
    }
    publish(sections, options.out)


if __name__ == "__main__":
    main()
