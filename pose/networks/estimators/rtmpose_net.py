"""RTMPose's network in plain torch, with MMPose's parameter names, so that MMPose's published checkpoints load.

The backbone is CSPNeXt (Lyu et al., RTMDet: An Empirical Study of Designing Real-Time Object Detectors, 2022,
arXiv:2212.07784). The RTMCC head is one gated attention unit over the joints (Hua et al., Transformer Quality in Linear
Time, 2022, arXiv:2202.10447). One classifier for each axis follows (Jiang et al., RTMPose, 2023, arXiv:2303.07399; Li
et al., SimCC, 2022, arXiv:2107.03332). Sizes and constants are those of open-mmlab/mmpose 1.3.2.

Axes: B batch, J joint, D feature of a joint, C channel.
"""

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.errors import PoseError
from pose.utils.shown import in_brief

STRIDE = 32
BINS_PER_PIXEL = 2
HIDDEN = 256  # number of features of a joint
QUERY = 128
# Channels and blocks of the four stages at size l. The last stage has pyramid pooling, and its blocks have no residual
# connections.
CHANNELS = (128, 256, 512, 1024)
BLOCKS = (3, 6, 6, 3)


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Scale factors of one model size, relative to size l."""

    depth: float  # factor on the number of blocks
    width: float  # factor on the number of channels


SIZES = {
    "t": ModelSize(0.167, 0.375),
    "s": ModelSize(0.33, 0.5),
    "m": ModelSize(0.67, 0.75),
    "l": ModelSize(1.0, 1.0),
    "x": ModelSize(1.33, 1.25),
}


class RTMPoseNetwork(nn.Module):
    """Network from normalised crops (B, 3, H, W) to SimCC scores (B, J, 2 W) along x and (B, J, 2 H) along y."""

    # The head always computes in float32, because its squared activations exceed the range of half precision.

    def __init__(self, size: str, joints: int, crop: tuple[int, int] = (192, 256)) -> None:
        """Build the network with random weights for crops of (width, height) px, multiples of 32."""
        super().__init__()
        if crop[0] % STRIDE or crop[1] % STRIDE:
            raise ValueError(f"crop: expected multiples of {STRIDE} px, got {crop[0]}x{crop[1]}")
        self.joints = joints
        self.crop = crop
        self.backbone = CSPNeXt(SIZES[size])
        self.head = RTMCCHead(int(CHANNELS[-1] * SIZES[size].width), joints, crop)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        scores: tuple[Tensor, Tensor] = self.head(self.backbone(samples).float())
        return scores


class CSPNeXt(nn.Module):
    """Backbone from B images (B, 3, H, W) to features with C channels (B, C, H / 32, W / 32)."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        channels = int(CHANNELS[0] // 2 * size.width)
        narrow = int(CHANNELS[0] // 2 * size.width // 2)
        self.stem = nn.Sequential(
            Convolution(3, narrow, 3, stride=2), Convolution(narrow, narrow, 3), Convolution(narrow, channels, 3)
        )
        for number, (full, blocks) in enumerate(zip(CHANNELS, BLOCKS, strict=True), start=1):
            wide, last = int(full * size.width), number == len(CHANNELS)
            stage: list[nn.Module] = [Convolution(channels, wide, 3, stride=2)]
            if last:
                stage.append(PyramidPooling(wide))
            stage.append(CrossStage(wide, max(round(blocks * size.depth), 1), residual=not last))
            self.add_module(f"stage{number}", nn.Sequential(*stage))
            channels = wide

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.children():
            x = stage(x)
        return x


class Convolution(nn.Module):
    """Convolution followed by batch normalisation and SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(self.bn(self.conv(x)))


class SeparableConvolution(nn.Module):
    """A depthwise 5 x 5 convolution followed by a pointwise one."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise_conv = Convolution(channels, channels, 5, groups=channels)
        self.pointwise_conv = Convolution(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = self.pointwise_conv(self.depthwise_conv(x))
        return mixed


class CSPNeXtBlock(nn.Module):
    """Two convolutions, with a residual connection if `residual` is true."""

    def __init__(self, channels: int, *, residual: bool) -> None:
        super().__init__()
        self.conv1 = Convolution(channels, channels, 3)
        self.conv2 = SeparableConvolution(channels)
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        changed: Tensor = self.conv2(self.conv1(x))
        return x + changed if self.residual else changed


class CrossStage(nn.Module):
    """Cross-stage layer: half of the channels pass through the blocks, then channel attention weights both halves."""

    def __init__(self, channels: int, blocks: int, *, residual: bool) -> None:
        super().__init__()
        half = channels // 2
        self.main_conv = Convolution(channels, half, 1)
        self.short_conv = Convolution(channels, half, 1)
        self.final_conv = Convolution(2 * half, channels, 1)
        self.blocks = nn.Sequential(*(CSPNeXtBlock(half, residual=residual) for _ in range(blocks)))
        self.attention = ChannelAttention(2 * half)

    def forward(self, x: Tensor) -> Tensor:
        both = torch.cat([self.blocks(self.main_conv(x)), self.short_conv(x)], dim=1)
        joined: Tensor = self.final_conv(self.attention(both))
        return joined


class ChannelAttention(nn.Module):
    """Multiplication of every channel by a weight that depends on the means of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.fc(x.mean(dim=(2, 3), keepdim=True)))


class PyramidPooling(nn.Module):
    """Spatial pyramid pooling: the feature map, concatenated with its maxima in windows of side 5, 9 and 13."""

    WINDOWS = (5, 9, 13)

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.conv1 = Convolution(channels, half, 1)
        self.conv2 = Convolution(half * (1 + len(self.WINDOWS)), channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        pooled: Tensor = self.conv2(torch.cat([x, *(F.max_pool2d(x, w, 1, w // 2) for w in self.WINDOWS)], dim=1))
        return pooled


class RTMCCHead(nn.Module):
    """Head that maps features (B, C, H / 32, W / 32) to SimCC scores (B, J, 2 W) along x and (B, J, 2 H) along y."""

    def __init__(self, channels: int, joints: int, crop: tuple[int, int]) -> None:
        super().__init__()
        width, height = crop
        cells = (width // STRIDE) * (height // STRIDE)
        self.final_layer = nn.Conv2d(channels, joints, 7, padding=3)
        self.mlp = nn.Sequential(ScaleNorm(cells), nn.Linear(cells, HIDDEN, bias=False))
        self.gau = GatedAttention()
        self.cls_x = nn.Linear(HIDDEN, width * BINS_PER_PIXEL, bias=False)
        self.cls_y = nn.Linear(HIDDEN, height * BINS_PER_PIXEL, bias=False)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        x_BJD = self.gau(self.mlp(self.final_layer(features).flatten(2)))
        return self.cls_x(x_BJD), self.cls_y(x_BJD)


class ScaleNorm(nn.Module):
    """Normalisation of features (..., D) to a learned root mean square (Nguyen and Salazar, 2019, arXiv:1910.05895)."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(1))
        self.scale = features**-0.5

    def forward(self, x: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True) * self.scale
        result: Tensor = x / norm.clamp(min=1e-5) * self.g
        return result


class FeatureScale(nn.Module):
    """Multiplication of every feature by its own learned factor."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


class GatedAttention(nn.Module):
    """Gated self-attention over J joints with D features (B, J, D), with a squared ReLU instead of the softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.expanded = 2 * HIDDEN
        self.ln = ScaleNorm(HIDDEN)
        self.uv = nn.Linear(HIDDEN, 2 * self.expanded + QUERY, bias=False)
        self.gamma = nn.Parameter(torch.rand(2, QUERY))
        self.beta = nn.Parameter(torch.rand(2, QUERY))
        self.o = nn.Linear(self.expanded, HIDDEN, bias=False)
        self.res_scale = FeatureScale(HIDDEN)

    def forward(self, x_BJD: Tensor) -> Tensor:
        gate, value, base = F.silu(self.uv(self.ln(x_BJD))).split([self.expanded, self.expanded, QUERY], dim=2)
        query, key = (base[:, :, None] * self.gamma + self.beta).unbind(dim=2)
        weights_BJJ = F.relu(query @ key.transpose(1, 2) / math.sqrt(QUERY)).square()
        mixed: Tensor = self.res_scale(x_BJD) + self.o(gate * (weights_BJJ @ value))
        return mixed


def load_checkpoint(path: Path) -> RTMPoseNetwork:
    """Load the network of an MMPose checkpoint (`.pth`) in float32 on the CPU; PoseError if it is none of RTMPose.

    The size of the model, the joints and the crop are derived from the checkpoint. Only tensors, plain values and NumPy
    arrays are unpickled, so the file cannot run code.
    """
    parameters = read_parameters(path)
    try:
        joints = len(parameters["head.final_layer.weight"])
        crop = tuple(len(parameters[f"head.cls_{axis}.weight"]) // BINS_PER_PIXEL for axis in "xy")
        width = len(parameters["backbone.stage4.0.conv.weight"]) / CHANNELS[-1]
        size = next(name for name, size in SIZES.items() if size.width == width)
        network = RTMPoseNetwork(size, joints, (crop[0], crop[1]))
        network.load_state_dict(parameters)
    except (KeyError, StopIteration, RuntimeError, ValueError) as error:
        raise PoseError(f"{path}: not a checkpoint of RTMPose for bodies, sizes {', '.join(SIZES)}") from error
    return network.eval()


def read_parameters(path: Path) -> dict[str, Tensor]:
    """Read the parameters of an OpenMMLab checkpoint by name."""
    try:
        with torch.serialization.safe_globals(_numpy_arrays()):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise PoseError(
            f"{path}: contains pickled objects other than tensors, which can run code; "
            "remove them with MMPose's tools/misc/publish_model.py"
        ) from error
    except (RuntimeError, OSError, EOFError) as error:
        raise PoseError(f"{path}: cannot be read as a checkpoint ({in_brief(error)})") from error
    parameters = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(parameters, dict) or not all(isinstance(value, Tensor) for value in parameters.values()):
        raise PoseError(f"{path}: contains no `state_dict` of tensors")
    return parameters


def _numpy_arrays() -> list[Callable[..., object] | tuple[Callable[..., object], str]]:
    """Return what is needed to unpickle the NumPy arrays in checkpoints' metadata, under NumPy 1 and 2 names."""
    from numpy._core.multiarray import _reconstruct, scalar

    parts = [
        (part, f"numpy.{core}.multiarray.{part.__name__}")
        for part in (_reconstruct, scalar)
        for core in ("core", "_core")
    ]
    return [*parts, np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "bool"))]
