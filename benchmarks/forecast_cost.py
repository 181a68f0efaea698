"""What a forecast costs on one thread, beside the streaming lifter's frame of the same people.

    python benchmarks/forecast_cost.py [--repeats 300]

Processor time from poses to poses, of one moment from 31 frames of the past, `forecaster` as shipped and `steady`, as
`pose-webcam` uses it; and of the lifter's step with its repair, on noise in the place of people. Each is measured in
turn, so that what else the machine does meets all of them; the tenth that went best says what it costs.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from pose.lifting.forecast import Past, load_forecaster
from pose.lifting.forecast.stabilized import StabilizedForecaster
from pose.lifting.load import load_lifter
from pose.lifting.stream import LifterStream, StreamLifter
from pose.structures.camera import Camera
from pose.structures.skeletons import COCO17
from pose.structures.types import People

PEOPLE = (1, 4, 10)
FRAMES = 31
LIFTER = "the streaming lifter's frame"


def past_of(people: int) -> Past:
    rng, shape = np.random.default_rng(0), (people, FRAMES)
    return Past(
        rng.normal(0, 0.3, (*shape, 17, 3)).astype(np.float32),
        rng.normal(4, 0.3, (*shape, 3)).astype(np.float32),
        np.full((*shape, 17), 30, np.float32),
        np.tile(np.arange(FRAMES) / 30, (people, 1)),
        np.ones(shape, bool),
    )


def frame_of(people: int, index: int) -> People:
    rng = np.random.default_rng(index)
    keypoints = rng.uniform(100, 600, (people, 17, 2)).astype(np.float32)
    scores = np.ones((people, 17), np.float32)
    boxes = np.concatenate([keypoints.min(axis=1), keypoints.max(axis=1)], axis=1)
    return People(index, index / 30, np.arange(people), boxes, scores[:, 0], keypoints, scores)


def works(people: int) -> dict[str, Callable[[int], object]]:
    """By name what is measured; each takes the number of the repeat."""
    forecaster, past, times = load_forecaster(), past_of(people), np.full((people, 1), 1.1)
    steady = StabilizedForecaster(forecaster)
    camera = Camera.of((1280, 720))
    lifter = StreamLifter(LifterStream(load_lifter("stream", "cpu"), COCO17, camera), repair=True)
    return {
        LIFTER: lambda index: list(lifter.push(frame_of(people, index))),
        "forecaster": lambda _: forecaster.predict(past, times),
        "steady": lambda _: steady.predict(past, times),
    }


def cost(people: int, repeats: int) -> dict[str, float]:
    """Milliseconds of processor time by name."""
    measured = works(people)
    spent: dict[str, list[float]] = {name: [] for name in measured}
    for index in range(repeats):
        for name, work in measured.items():
            began = time.thread_time()
            work(index)
            spent[name].append(time.thread_time() - began)
    return {name: 1000 * float(np.quantile(values, 0.1)) for name, values in spent.items()}


def cost_table(repeats: int = 300) -> list[str]:
    """Markdown: milliseconds, and as a share of the lifter's."""
    lines = ["| ms | " + " | ".join("1 person" if people == 1 else f"{people} people" for people in PEOPLE) + " |"]
    lines.append("|---" * (1 + len(PEOPLE)) + "|")
    found = [cost(people, repeats) for people in PEOPLE]
    for name in found[0]:
        cells = [f"{one[name]:.2f} (x {one[name] / one[LIFTER]:.2f})" for one in found]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=300)
    print("\n".join(cost_table(parser.parse_args().repeats)))


if __name__ == "__main__":
    main()
