"""Small tasks: random questions and their vocabulary.

A question is a list of tokens that ends with an equals sign; its answer follows. Sequences are padded at the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import I64


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its answer."""

    question: tuple[int, ...]  # tokens of the question, with the equals sign at the end
    answer: tuple[int, ...]  # tokens of the answer, with the end token at the end if the task has one
    tags: frozenset[str] = frozenset()  # categories of the question, which are counted separately


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of question, with its vocabulary and simple rules as baselines."""

    vocabulary: tuple[str, ...]  # tokens by code; the first is the padding
    length: int  # maximum length of question and answer together, tokens
    draw: Callable[[np.random.Generator], Example]  # function that samples an example
    # Simple rules by name: functions from the question to an answer, as baselines for models.
    guesses: Mapping[str, Callable[[Sequence[int]], tuple[int, ...]]]

    def written(self, tokens: Sequence[int]) -> str:
        """Convert tokens to text."""
        return " ".join(self.vocabulary[token] for token in tokens)


PAD = 0


def distinct(task: Task, seed: tuple[int, ...], without: frozenset[tuple[int, ...]] = frozenset()) -> Iterator[Example]:
    """Yield random examples without end, which may repeat; equal seeds give equal examples."""
    rng = np.random.default_rng(seed)
    while True:
        example = task.draw(rng)
        if example.question not in without:
            yield example


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples padded to equal length."""

    tokens: I64  # (B, N) questions and answers
    answers: NDArray[np.bool_]  # (B, N - 1) bool, True where the next token is part of the answer

    @classmethod
    def of(cls, examples: Sequence[Example], length: int) -> "Batch":
        """Build a batch of examples, padded to `length` tokens."""
        tokens = np.full((len(examples), length), PAD)
        answers = np.zeros((len(examples), length - 1), bool)
        for row, example in enumerate(examples):
            asked, end = len(example.question), len(example.question) + len(example.answer)
            tokens[row, :end] = example.question + example.answer
            answers[row, asked - 1 : end - 1] = True
        return cls(tokens, answers)
