"""Add an attention mechanism without changing this package. Needs torch.

python examples/new_attention.py
pose-train lifter --plugin examples/new_attention.py --train.model.attention mean --data.mocap clips.npz --out runs/mean
pose-eval sequence --plugin examples/new_attention.py --lifter runs/mean/final.safetensors --keypoints a.npz --gt b.npz
"""

import torch
from torch import Tensor, nn

from pose.lifting.attention import ATTENTIONS, Attention, Capabilities, Context
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork


class MeanAttention(Attention):
    """Every frame receives the mean of all valid frames: the simplest mechanism there is."""

    capabilities = Capabilities(padding=True, causal=False, streaming=False, relative_time=False, cost="O(T)")

    def __init__(self, dim: int, heads: int, *, causal: bool = False) -> None:
        super().__init__(dim, heads, causal=causal)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D). Frames that are not valid are zeros."""
        values_BTD = self.v_proj(x_BTD)
        if context.valid is None:
            mean_B1D = values_BTD.mean(dim=1, keepdim=True)
        else:
            weight_BT1 = context.valid[..., None].to(values_BTD.dtype)
            mean_B1D = (values_BTD * weight_BT1).sum(dim=1, keepdim=True) / weight_BT1.sum(dim=1, keepdim=True).clamp(1)
        return self.out_proj(mean_B1D.expand_as(values_BTD))


ATTENTIONS["mean"] = MeanAttention  # from now on `attention: mean` works in every recipe of this process

if __name__ == "__main__":
    network = LifterNetwork(LifterConfig(dim=64, depth=2, heads=2, attention="mean"))
    parameters = sum(parameter.numel() for parameter in network.parameters())
    print(f"lifter with mean attention: {parameters} parameters; torch {torch.__version__}")
