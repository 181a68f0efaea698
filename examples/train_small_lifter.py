"""Train a small lifter. Needs `pip install "pose-run[train]"` and the file of `pose-prepare mocap`.

python examples/train_small_lifter.py clips.npz run 200
"""

import sys
from pathlib import Path

from pose_datasets.training import MocapConfig, MocapSource

from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.training.config import OptimizerConfig, TrainConfig
from pose.training.measure import measure
from pose.training.trainer import Trainer

clips, folder, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
config = TrainConfig(
    model=LifterConfig(dim=64, depth=2, heads=2, attention="softmax", norm="pre"),
    optimizer=OptimizerConfig(name="adamw", lr=2e-3),
    steps=steps,
    evaluate_every=steps,
    precision="fp32",
)
data = MocapSource(MocapConfig(mocap=clips), config.seed)
validation = {condition: list(batches) for condition, batches in data.evaluation("validation").items()}


def evaluate(network: LifterNetwork, step: int) -> dict[str, float]:
    """MPJPE in mm for each kind of 2D. The first one selects `best.safetensors`."""
    return {condition: measure(network, batches).mpjpe for condition, batches in validation.items()}


trainer = Trainer(config, data, folder, evaluate)
trainer.run(lambda step, figures: print(f"step {step}: loss {figures['loss']:.3f}"))
for condition, batches in validation.items():
    print(f"validation, {condition} 2D: {measure(trainer.final_network(), batches)}")
