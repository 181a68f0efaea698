"""Task of nested MAX and MIN of digits, optionally with mean and modular sum: `MAX( 3 5 MIN( 9 2 ) ) =` -> 5.

A call has two or three arguments, one of them an inner call with probability 1/2, and at most ten tokens before the
equals sign. The mean is rounded down; the sum is modulo 10.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pose.training.laboratory.tasks.task import Example, Task

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
    """Evaluate one expression with a stack.

    Raises:
        ValueError: If the tokens are not a valid expression.
    """
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
