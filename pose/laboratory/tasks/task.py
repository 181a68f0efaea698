"""What a small task is: how questions are drawn, and the vocabulary of questions and answers.

A question is a list of tokens that ends with an equals sign; its answer follows. Sequences are padded at the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Example:
    """question: its last token asks. answer: what should follow, the end included. tags: what kind of question it is,
    to be counted by itself."""

    question: tuple[int, ...]
    answer: tuple[int, ...]
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """vocabulary: tokens by code; the first is the padding. length: of question and answer together at most. draw: one
    example. guesses: answers of simple tricks, by name, for a question; what they are worth is printed beside a
    model's."""

    vocabulary: tuple[str, ...]
    length: int
    draw: Callable[[np.random.Generator], Example]
    guesses: Mapping[str, Callable[[Sequence[int]], tuple[int, ...]]]

    def written(self, tokens: Sequence[int]) -> str:
        """Tokens as people read them."""
        return " ".join(self.vocabulary[token] for token in tokens)


PAD = 0


def distinct(task: Task, seed: tuple[int, ...], without: frozenset[tuple[int, ...]] = frozenset()) -> Iterator[Example]:
    """Endless examples, none of whose questions is in `without`; the same for the same seed."""
    rng = np.random.default_rng(seed)
    while True:
        example = task.draw(rng)
        if example.question not in without:
            yield example


@dataclass(frozen=True, slots=True)
class Batch:
    """tokens: (B, N) questions and answers. answers: (B, N - 1) True where the next token is part of the answer."""

    tokens: I64
    answers: NDArray[np.bool_]

    @classmethod
    def of(cls, examples: Sequence[Example], length: int) -> "Batch":
        """Make a padded batch of examples."""
        tokens = np.full((len(examples), length), PAD)
        answers = np.zeros((len(examples), length - 1), bool)
        for row, example in enumerate(examples):
            asked, end = len(example.question), len(example.question) + len(example.answer)
            tokens[row, :end] = example.question + example.answer
            answers[row, asked - 1 : end - 1] = True
        return cls(tokens, answers)
