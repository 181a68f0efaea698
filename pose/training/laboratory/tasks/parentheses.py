"""Task of marking the tokens inside the parentheses: `2 ( 3 8 7 ) 4 =` -> `0 0 1 1 1 0 0`.

The parentheses themselves count as outside.
"""

from collections.abc import Sequence

import numpy as np

from pose.training.laboratory.tasks.task import Example, Task

SIZE = 7  # tokens of a question, without the equals sign
VOCABULARY = ("pad", *"0123456789", "(", ")", "=")
DIGIT, OPEN, CLOSE, EQUALS = (VOCABULARY.index(token) for token in ("0", "(", ")", "="))


def draw(rng: np.random.Generator) -> Example:
    """Sample a question with one of 15 equally probable pairs of parentheses around at least one digit."""
    places = [(first, last) for first in range(SIZE) for last in range(first + 2, SIZE)]
    first, last = places[rng.integers(len(places))]
    tokens = [int(token) for token in DIGIT + rng.integers(10, size=SIZE)]
    tokens[first], tokens[last] = OPEN, CLOSE
    return Example((*tokens, EQUALS), tuple(DIGIT + int(first < i < last) for i in range(SIZE)))


def likeliest(question: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens 0 1 1 1 0 0 0 for every question, one of the 15 possible answers."""
    return tuple(DIGIT + int(token) for token in (0, 1, 1, 1, 0, 0, 0))


TASK = Task(VOCABULARY, 2 * SIZE + 1, draw, {"always the same answer": likeliest})
