"""How closely our RTMPose follows MMPose's own, with the same weights.

    python benchmarks/rtmpose_agreement.py [--record tests/networks/estimators/rtmpose_mmpose.json]

Runs in an environment that has mmpose 1.3.2 (`pose-setup mmpose`). Weights are random, the same on both sides: see
`rtmpose_weights.py`. Prints, for every size and number of joints, the largest difference of the SimCC scores, of the
joints decoded from the same crops, and of the joints of whole images (boxes, crops and normalisation included).
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rtmpose_weights import random_crops, random_network

from pose.networks.estimators.mmpose_import import import_apis
from pose.networks.estimators.rtmpose import RTMPose, decode
from pose.networks.estimators.rtmpose_net import RTMPoseNetwork
from pose.networks.options import StageOptions
from pose.structures.types import U8, Boxes
from pose.video import open_source

CONFIGS = {
    ("t", 17): "rtmpose-t_8xb256-420e_body8-256x192",
    ("s", 17): "rtmpose-s_8xb256-420e_body8-256x192",
    ("m", 17): "rtmpose-m_8xb256-420e_body8-256x192",
    ("t", 26): "rtmpose-t_8xb1024-700e_body8-halpe26-256x192",
    ("s", 26): "rtmpose-s_8xb1024-700e_body8-halpe26-256x192",
    ("m", 26): "rtmpose-m_8xb512-700e_body8-halpe26-256x192",
}
STEP = 64  # every so many SimCC scores are recorded
BOXES = np.array([[120, 60, 260, 420], [30.5, 100.25, 200, 480], [-40, -20, 90, 200]], np.float32)


def mmpose_model(config: str, network: RTMPoseNetwork) -> Any:
    """MMPose's own model of a config, with the parameters of `network`."""
    apis = import_apis()
    import mmpose

    file = Path(mmpose.__file__).parent / ".mim/configs/body_2d_keypoint/rtmpose/body8" / f"{config}.py"
    plain = {"model": {"test_cfg": {"flip_test": False}, "backbone": {"init_cfg": None}}}
    model = apis.init_model(str(file), None, device="cpu", cfg_options=plain)
    model.load_state_dict(network.state_dict())
    return model


def compare(size: str, joints: int, image: U8) -> dict[str, Any]:
    """One case: prints a row and returns MMPose's numbers on one crop of noise."""
    network = random_network(size, joints)
    theirs = mmpose_model(CONFIGS[size, joints], network)
    crops = random_crops(1)
    with torch.inference_mode():
        expected = theirs.head(theirs.extract_feat(crops))
        ours = network(crops)
        keypoints = theirs.head.decode(expected)[0].keypoints
    scores = max(float((a - b).abs().max()) for a, b in zip(ours, expected, strict=True))
    points = np.abs(decode(*(axis.numpy() for axis in ours))[0] - keypoints).max()
    print(f"{size:4} {joints:6} {scores:12.2e} {points:14.4f} {whole_image(network, theirs, image):16.4f}", flush=True)
    return {
        "size": size,
        "joints": joints,
        "step": STEP,
        "simcc_x": expected[0][:, :, ::STEP].numpy().round(6).tolist(),
        "simcc_y": expected[1][:, :, ::STEP].numpy().round(6).tolist(),
        "keypoints": keypoints.tolist(),
    }


def whole_image(network: RTMPoseNetwork, theirs: Any, image: U8) -> float:
    """Largest distance in px between the joints that both find in the BOXES of an image."""
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"state_dict": network.state_dict()}, Path(folder) / "weights.pth")
        ours = RTMPose(model=Path(folder) / "weights.pth", options=StageOptions(device="cpu"))
    found = ours.estimate([image], [ours.regions(Boxes(BOXES, np.ones(len(BOXES), np.float32)))])[0]
    samples = import_apis().inference_topdown(theirs, image[..., ::-1].copy(), BOXES)
    expected = np.concatenate([sample.pred_instances.keypoints for sample in samples])
    return float(np.linalg.norm(found.xy - expected, axis=2).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--video", default="../shared/videos/dance.mp4", help="clip whose first frame is used")
    parser.add_argument("--record", type=Path, help="write MMPose's numbers to this JSON file, for the tests")
    options = parser.parse_args()
    with open_source(options.video) as source:
        image = next(iter(source)).image
    print(f"{'size':4} {'joints':>6} {'SimCC':>12} {'same crops, px':>14} {'whole image, px':>16}")
    cases = [compare(size, joints, image) for size, joints in CONFIGS]
    if options.record:
        import mmpose

        lines = ",\n".join(json.dumps(case) for case in cases)
        text = f'{{"mmpose": "{mmpose.__version__}", "torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n'
        options.record.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
