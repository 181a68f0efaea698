"""Batched lifting with a streaming lifter, for training data."""

from collections.abc import Callable

from pose.errors import UsageError
from pose.structures.sequences import LiftBatch
from pose.structures.types import F32
from pose.utils.device import require_torch


def batch_lifter(name: str) -> Callable[[LiftBatch], tuple[F32, F32, F32]]:
    """Return a function that lifts batches causally: joints (B, T, 17, 3) m, pelvis (B, T, 3) m, sigma mm."""
    require_torch("pose-prepare forecast, which lifts many sequences at once,")
    from pose.lifting.torch_lifter import TorchLifter
    from pose.training.measure import lift_batch
    from pose_apps.support.lifters import allow_research_lifters

    allow_research_lifters(name)
    lifter = TorchLifter.load(name)
    if not lifter.network.config.streaming:
        raise UsageError(f"--lifter: {name} is not a causal network; use stream")

    def lift(batch: LiftBatch) -> tuple[F32, F32, F32]:
        lifted = lift_batch(lifter.network, batch)
        return lifted.joints.numpy(), lifted.root.numpy(), lifted.sigma.numpy()

    return lift
