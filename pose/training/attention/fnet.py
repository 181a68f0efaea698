"""FNet (Lee-Thorp et al., 2021): mixing with a Fourier transform, without parameters."""

import torch
from torch import Tensor

from pose.lifting.attention.base import Attention, Capabilities, Context


class FNetAttention(Attention):
    """The real part of the orthonormal Fourier transform over frames and features."""

    # The published transform is not orthonormal. It multiplies the size of a token by sqrt(T D / 2), for example 88 for
    # 243 frames of 64 features, which only post-norm can undo. Invalid frames enter as zeros. The function depends on
    # the sequence length, so use one length throughout.

    capabilities = Capabilities(padding=False, causal=False, streaming=False, relative_time=False, cost="O(T log T D)")

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        # The transform does not support half precision
        precise = x_BTD if x_BTD.dtype == torch.float64 else x_BTD.float()
        transformed: Tensor = torch.fft.fft2(precise, norm="ortho")
        return transformed.real.to(x_BTD.dtype)
