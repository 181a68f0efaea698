"""MOTA, HOTA, IDF1 and identity switches of every tracker on scenes of known truth.

    python benchmarks/tracking.py --shared ../shared
    python benchmarks/tracking.py --shared ../shared --stages "rtmdet, blazepose" --trackers ocsort --drawn 3

Needs `trackers`, which brings a second OpenCV: install it into an environment of its own beside this project.
The scenes are those of benchmarks/tracking_scenes.py, or as many as are asked for drawn by lot
(benchmarks/tracking_drawn.py), the metrics those of `trackers.eval`, which follows TrackEval.
A person counts as found where the box around the joints has an IoU of at least 0.4 with the true one (the stages'
skeletons end at different joints); HOTA averages over all IoUs. YOLO-pose processes each frame on its own, so its
identities come from association alone; BlazePose follows each person's region, with any detector, and association
matters for lost tracks. Only where everything hangs on association it is also run without keypoint similarity.
"""

import argparse
from pathlib import Path

import numpy as np
from trackers.eval import compute_clear_metrics, compute_hota_metrics, compute_identity_metrics
from tracking_drawn import Lot
from tracking_scenes import Cast, SceneFrame, scenes

from pose.config import PipelineConfig
from pose.networks import crops
from pose.pipeline import Pipeline
from pose.structures.stages import PeopleStage
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.identities import Identities

FOUND = 0.4  # IoU


def stages(shared: Path) -> dict[str, dict[str, str]]:
    """What differs from the default configuration, by the stage's name."""
    yolo = str(shared / "weights" / "yolo26n-pose-256-int8.onnx")
    return {
        "rtmdet, blazepose": {"detector": "rtmdet", "estimator": "blazepose"},
        "blazepose": {"detector": "blazepose", "estimator": "blazepose"},
        "yolo-pose": {"detector": "yolo-pose", "estimator": "yolo-pose", "detector_model": yolo},
    }


def row(stage: PeopleStage, images: list[SceneFrame]) -> list[str]:
    """MOTA, HOTA, IDF1 and switches of a stage on a scene."""
    truth, answers, similar = [], [], []
    for index, frame in enumerate(images):
        people = stage.step(frame.image, index, frame.time)
        boxes = crops.bounds(people.keypoints, people.scores > 0) if len(people) else people.boxes
        truth.append(frame.ids - 1)
        answers.append(people.ids)
        similar.append(crops.box_iou(frame.boxes, boxes).astype(float))
    names = sorted({int(number) for ids in answers for number in ids})
    answers = [np.searchsorted(names, ids) for ids in answers]
    clear = compute_clear_metrics(truth, answers, similar, threshold=FOUND)
    identity = compute_identity_metrics(truth, answers, similar, threshold=FOUND)
    hota = compute_hota_metrics(truth, answers, similar)
    shares = clear["MOTA"], hota["HOTA"], identity["IDF1"]
    return [*(f"{100 * share:.1f}" for share in shares), str(clear["IDSW"])]


def drawn(shared: Path, seeds: range) -> dict[str, list[SceneFrame]]:
    """Randomly drawn scenes, one of each kind for every seed."""
    lot = Lot(shared)
    return {f"{name}, {seed}": images for seed in seeds for name, images in lot.scenes(seed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--stages", nargs="+", help="only these stages, by their names in the table")
    parser.add_argument("--trackers", nargs="+", choices=list(BOX_TRACKERS), default=list(BOX_TRACKERS))
    parser.add_argument("--drawn", type=int, default=0, help="in place of the table's scenes, this many of each kind")
    parser.add_argument("--first-seed", type=int, default=0, help="with --drawn: the seed of the first of each kind")
    options = parser.parse_args()
    chosen = stages(options.shared)
    if unknown := set(options.stages or chosen) - set(chosen):
        parser.error(f"--stages: unknown {sorted(unknown)}; known: {list(chosen)}")
    if options.first_seed < 0 or (options.first_seed and not options.drawn):
        parser.error("--first-seed: a number of 0 or more, with --drawn")
    seeds = range(options.first_seed, options.first_seed + options.drawn)
    films = drawn(options.shared, seeds) if seeds else scenes(Cast.load(options.shared))
    print("| stage | tracker | OKS | scene | MOTA | HOTA | IDF1 | switches |\n|---|---|---|---|---|---|---|---|")
    for name, changes in chosen.items():
        if options.stages and name not in options.stages:
            continue
        for tracker in options.trackers:
            pipeline = Pipeline(PipelineConfig(tracker=tracker, **changes))
            for similarity in (False, True) if name == "yolo-pose" else (True,):
                for scene, images in films.items():
                    stage = pipeline.people_stage()
                    if not similarity:
                        stage._identities = Identities(tracker)  # type: ignore[attr-defined]
                    cells = [name, tracker, "yes" if similarity else "no", scene, *row(stage, images)]
                    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
