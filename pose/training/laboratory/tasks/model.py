"""Small networks that predict the next token, built from the lifter's blocks or recurrent cells."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import Context
from pose.lifting.config import LifterConfig
from pose.lifting.forecast.decoder import DecoderBlock
from pose.lifting.initialization import initialize, initialize_decoder
from pose.lifting.model import FORMS, LifterBlock, attention_blocks
from pose.training.laboratory.tasks.task import PAD

POSITIONS = ("learned", "sinusoidal", "rotary", "none")
TOKEN_SECONDS = 0.05  # times in s between tokens for `rotary`, where the fastest phase rotates by half a turn per token


class TokenModel(nn.Module):
    """A causal network that predicts the next token; attention knows positions only with `rotary`."""

    def __init__(self, config: LifterConfig, words: int, length: int, positions: str) -> None:
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(f"positions: {positions!r} is not one of {', '.join(POSITIONS)}")
        if config.tokens != "frames":
            raise ValueError(f"tokens: {config.tokens} is not supported for text; use frames")
        if config.attention_options.get("distribution") == "hard":
            raise ValueError("attention_options: the distribution hard needs a lifting loss; choose another")
        self.head_dim = config.dim // config.heads
        self.embed = nn.Linear(words, config.dim)
        self.blocks = nn.ModuleList(cast(Sequence[nn.Module], FORMS[config.form].blocks(config)))
        self.norm = nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()
        self.head = nn.Linear(config.dim, words)
        self.words, self.rotary = words, positions == "rotary"
        initialize(self, config.init, torch.eye(words))
        self.places = places(length, config, positions)

    def forward(self, tokens_BN: Tensor) -> Tensor:
        """Compute the logits of the next token (B, N, words) for tokens (B, N)."""
        x = self.embed(F.one_hot(tokens_BN, self.words).float()) + self.places[: tokens_BN.shape[1]]
        context = token_context(tokens_BN, self.head_dim, self.rotary)
        for block in self.blocks:
            x = cast(LifterBlock, block)(x, context)
        logits: Tensor = self.head(self.norm(x))
        return logits


class EncoderDecoder(nn.Module):
    """An encoder for the question, and a decoder that writes the answer (Vaswani et al., 2017)."""

    # For the decoder, padding replaces the question up to `equals`, so that positions in encoder and decoder agree.

    def __init__(self, config: LifterConfig, words: int, length: int, positions: str, equals: int) -> None:
        super().__init__()
        if config.model != "transformer" or config.attention != "softmax":
            raise ValueError("form: an encoder and decoder have softmax attention; use form: decoder for others")
        self.words, self.rotary, self.equals = words, positions == "rotary", equals
        self.head_dim = config.dim // config.heads
        one_way = replace(config, streaming=False)
        self.encoder = _Stack(words, config.dim, attention_blocks(one_way))
        self.decoder = _Stack(words, config.dim, [DecoderBlock(config, True, length) for _ in range(config.depth)])
        self.places = places(length, config, positions)
        self.norms = nn.ModuleList(
            nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity() for _ in range(2)
        )
        self.head = nn.Linear(config.dim, words)
        initialize(self.encoder, config.init, torch.eye(words))
        initialize_decoder(self.decoder, config.init)
        if config.init == "t-fixup":  # T-Fixup assumes standard normal inputs, but these are one-hot
            self.decoder.embed.weight.data *= words**0.5

    def forward(self, tokens_BN: Tensor) -> Tensor:
        """Compute the logits of the next token (B, N, words) for tokens (B, N), which are valid only for the answer."""
        sign = tokens_BN == self.equals
        writes = sign.cumsum(dim=1) > 0
        asked = ~writes | (sign & (sign.cumsum(dim=1) == 1))
        # Padded to the longest sequence, so that outputs do not depend on the current length.
        question = F.pad(tokens_BN.where(asked, PAD), (0, len(self.places) - tokens_BN.shape[1]), value=PAD)
        x, known = self._tokens(self.encoder, question), token_context(question, self.head_dim, self.rotary)
        for block in self.encoder.blocks:
            x = block(x, known)
        memory = self.norms[0](x)
        context = token_context(tokens_BN, self.head_dim, self.rotary)
        y = self._tokens(self.decoder, tokens_BN.where(writes, PAD))
        for block in self.decoder.blocks:
            y = block(y, context, cast(DecoderBlock, block).cross.remember(memory, known))
        logits: Tensor = self.head(self.norms[1](y))
        return logits

    def _tokens(self, stack: "_Stack", tokens_BN: Tensor) -> Tensor:
        x: Tensor = stack.embed(F.one_hot(tokens_BN, self.words).float())
        return x + self.places[: tokens_BN.shape[1]]


class _Stack(nn.Module):
    """Embedding and blocks in the form that `pose.lifting.initialization` expects."""

    def __init__(self, words: int, dim: int, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Linear(words, dim)
        self.blocks = nn.ModuleList(blocks)


@torch.inference_mode()
def write(network: nn.Module, question: Sequence[int], count: int) -> list[int]:
    """Return the `count` tokens that greedy decoding appends to a question."""
    tokens = list(question)
    for _ in range(count):
        tokens.append(int(network(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(question) :]


def places(length: int, config: LifterConfig, positions: str) -> nn.Parameter:
    """Create the position embeddings (length, D) for `positions`, one of `POSITIONS`; zero for `rotary` and `none`.

    With T-Fixup, learned embeddings are scaled by its factor for the tokens.
    """
    if positions == "sinusoidal":
        return nn.Parameter(sinusoids(length, config.dim), requires_grad=False)
    added = nn.Parameter(torch.zeros(length, config.dim), requires_grad=positions == "learned")
    if positions == "learned":
        small = (9 * config.depth) ** -0.25 if config.init == "t-fixup" else 1.0
        nn.init.normal_(added, std=0.3 * small)
    return added


def token_context(tokens_BN: Tensor, head_dim: int, rotary: bool) -> Context:
    """Build a context whose times are proportional to the token positions if `rotary`, and all 0 otherwise."""
    seconds = torch.arange(tokens_BN.shape[1], dtype=torch.float64) * (TOKEN_SECONDS if rotary else 0.0)
    return Context.from_times(seconds.expand(tokens_BN.shape), head_dim)


def sinusoids(length: int, dim: int) -> Tensor:
    """Return position encodings (length, dim): sines and cosines of wavelengths 2 pi to 20,000 pi (Vaswani, 2017)."""
    rates = torch.exp(-math.log(10_000.0) * torch.arange(0, dim, 2) / dim)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]
