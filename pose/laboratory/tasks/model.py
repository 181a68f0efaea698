"""A small network over tokens, made of the lifter's blocks or cells: the next token from those before it."""

import math
from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention import Context
from pose.lifter.config import LifterConfig
from pose.lifter.initialization import initialize
from pose.lifter.model import Block, attention_blocks
from pose.lifter.recurrent import RecurrentBlock, recurrent_blocks

POSITIONS = ("learned", "sinusoidal", "rotary", "none")
TOKEN_SECONDS = 0.05  # rotary time counts seconds; so the fastest phase turns by half a turn from token to token


class TokenModel(nn.Module):
    """config: of the stack, which is made causal. words: size of the vocabulary. length: the longest sequence.
    positions: one of `POSITIONS`; all but rotary leave attention without time. Recurrent cells need none."""

    def __init__(self, config: LifterConfig, words: int, length: int, positions: str) -> None:
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(f"positions: {positions!r} is not one of {', '.join(POSITIONS)}")
        recurrent = config.model != "transformer"
        blocks: list[Block] | list[RecurrentBlock] = recurrent_blocks(config) if recurrent else attention_blocks(config)
        self.head_dim = config.dim // config.heads
        self.embed = nn.Linear(words, config.dim)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()
        self.head = nn.Linear(config.dim, words)
        initialize(self, config.init)
        self.words, self.rotary = words, positions == "rotary"
        places: Callable[[int, int], Tensor] = sinusoids if positions == "sinusoidal" else torch.zeros
        self.places = nn.Parameter(places(length, config.dim), requires_grad=positions == "learned")
        if positions == "learned":
            nn.init.normal_(self.places, std=0.3)

    def forward(self, tokens_BN: Tensor) -> Tensor:
        """(B, N) -> log odds of the next token (B, N, words)."""
        count = tokens_BN.shape[1]
        x = self.embed(F.one_hot(tokens_BN, self.words).float()) + self.places[:count]
        seconds = torch.arange(count, dtype=torch.float64) * (TOKEN_SECONDS if self.rotary else 0.0)
        context = Context.from_times(seconds.expand(len(tokens_BN), count), self.head_dim)
        for block in self.blocks:
            x = cast(Block | RecurrentBlock, block)(x, context)
        odds: Tensor = self.head(self.norm(x))
        return odds

    @torch.inference_mode()
    def answer(self, question: list[int], count: int) -> list[int]:
        """The likeliest token `count` times, each after all before it."""
        tokens = list(question)
        for _ in range(count):
            tokens.append(int(self(torch.tensor([tokens]))[0, -1].argmax()))
        return tokens[len(question) :]


def sinusoids(length: int, dim: int) -> Tensor:
    """(length, dim) sines and cosines of wavelengths from 2 pi to 10,000 2 pi (Vaswani et al., 2017)."""
    rates = torch.exp(-math.log(10_000.0) * torch.arange(0, dim, 2) / dim)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]
