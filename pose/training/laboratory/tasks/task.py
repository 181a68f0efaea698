"""Small tasks: random questions and their vocabulary, and the calculator of nested MAX and MIN.

A question is a list of tokens that ends with an equals sign; its answer follows. Sequences are padded at the end.

A call has two or three arguments, one of them an inner call with probability 1/2, and at most ten tokens before the
equals sign. The mean is rounded down; the sum is modulo 10.
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


VOCABULARY = ("pad", *"0123456789", "MAX(", "MIN(", ")", "=", "MEAN(", "SUM(")
DIGIT, CLOSE, EQUALS = (VOCABULARY.index(token) for token in ("0", ")", "="))
OPERATORS: dict[int, Callable[[Sequence[int]], int]] = {
    VOCABULARY.index("MAX("): lambda values: max(values),
    VOCABULARY.index("MIN("): lambda values: min(values),
    VOCABULARY.index("MEAN("): lambda values: sum(values) // len(values),
    VOCABULARY.index("SUM("): lambda values: sum(values) % 10,
}
LONGEST = 10


def drawing(operators: Sequence[int]) -> Callable[[np.random.Generator], Example]:
    """Return a function that samples examples with the given operators (tokens)."""

    def draw(rng: np.random.Generator) -> Example:
        nested = bool(rng.random() < 0.5)
        while True:
            tokens = _call(rng, operators, nested)
            if len(tokens) <= LONGEST:
                break
        tags = frozenset({"nested"}) if nested else frozenset()
        return Example((*tokens, EQUALS), (DIGIT + value(tokens),), tags)

    return draw


def _call(rng: np.random.Generator, operators: Sequence[int], nested: bool) -> list[int]:
    count = int(rng.integers(2, 4))
    inner = int(rng.integers(count)) if nested else -1
    tokens = [operators[int(rng.integers(len(operators)))]]
    for place in range(count):
        tokens += _call(rng, operators, False) if place == inner else [DIGIT + int(rng.integers(10))]
    return [*tokens, CLOSE]


def value(tokens: Sequence[int]) -> int:
    """Evaluate one expression with a stack; ValueError if the tokens are not a valid expression."""
    stack: list[list[int]] = [[]]
    for token in tokens:
        if token in OPERATORS:
            stack.append([token])
        elif token == CLOSE and len(stack) > 1 and len(stack[-1]) > 1:
            operator, *arguments = stack.pop()
            stack[-1].append(OPERATORS[operator](arguments))
        elif DIGIT <= token < DIGIT + 10:
            stack[-1].append(token - DIGIT)
        else:
            raise ValueError(f"not a valid expression: {tokens}")
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError(f"not a valid expression: {tokens}")
    return stack[0][0]


def flat(question: Sequence[int]) -> tuple[int, ...]:
    """Return the answer of the simple rule that ignores nesting: the outer operator is applied to all digits."""
    return (DIGIT + OPERATORS[question[0]]([token - DIGIT for token in question if DIGIT <= token < DIGIT + 10]),)


def by_operator(question: Sequence[int]) -> tuple[int, ...]:
    """Return the answer from the outer operator only: 9 for MAX, 0 for MIN, 4 for the mean, 0 for the sum."""
    return (DIGIT + {"MAX(": 9, "MIN(": 0, "MEAN(": 4, "SUM(": 0}[VOCABULARY[question[0]]],)


def task(operators: int) -> Task:
    """Build the task with 2 operators (MAX, MIN) or 4 (also mean and sum)."""
    tricks = {"the outer operator alone": by_operator, "nesting ignored": flat}
    return Task(VOCABULARY[: 13 + operators], LONGEST + 2, drawing(list(OPERATORS)[:operators]), tricks)
