"""FNet (Lee-Thorp et al., 2021): mixing by a Fourier transform, without parameters."""

import torch
from torch import Tensor

from pose.attention.base import Attention, Capabilities, Context


class FNetAttention(Attention):
    """The real part of the Fourier transform over frames and features.

    The transform is orthonormal. The published one is not and multiplies a token's size by sqrt(T D / 2), 88 for 243
    frames of 64 features, which only a LayerNorm after the sum (post-norm) undoes; with this one every norm works.
    Frames that are not valid enter as zeros, and each length is another function: use one length throughout.
    """

    capabilities = Capabilities(padding=False, causal=False, streaming=False, relative_time=False, cost="O(T log T D)")

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        precise = x_BTD if x_BTD.dtype == torch.float64 else x_BTD.float()  # there is no transform of half precision
        transformed: Tensor = torch.fft.fft2(precise, norm="ortho")
        return transformed.real.to(x_BTD.dtype)
