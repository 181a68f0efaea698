"""Task of reducing words of a free group: `a b e d b c =` -> `b c eos`, where d, e, f are the inverses of a, b, c.

Two variants include intermediate steps. `steps` repeatedly removes the first cancelling pair and writes the shorter
word, until no pair is left: `a b e d = a d = 1 eos`. `brackets` marks the pair before removing it: `a b e d = a ( b e )
d = a d = ( a d ) = 1 eos`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pose.training.laboratory.tasks.task import Example, Task

VOCABULARY = ("pad", "1", "a", "b", "c", "d", "e", "f", "=", "eos", "(", ")")
ONE, FIRST, EQUALS, END, OPEN, CLOSE = (VOCABULARY.index(token) for token in ("1", "a", "=", "eos", "(", ")"))
GENERATORS = 3
VARIANTS = ("answer", "steps", "brackets")


def inverse(letter: int) -> int:
    """Return the inverse of a letter."""
    return (letter - FIRST + GENERATORS) % (2 * GENERATORS) + FIRST


def reduced(word: Sequence[int]) -> tuple[int, ...]:
    """Remove all pairs of adjacent inverse letters from a word, with a stack."""
    stack: list[int] = []
    for letter in word:
        if stack and stack[-1] == inverse(letter):
            stack.pop()
        else:
            stack.append(letter)
    return tuple(stack)


def written(word: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens of a word; those of the empty word are a single 1."""
    return tuple(word) or (ONE,)


def solution(word: Sequence[int], variant: str) -> tuple[int, ...]:
    """Return the tokens of the answer, which follow the equals sign."""
    if variant == "answer":
        return (*written(reduced(word)), END)
    word, lines = tuple(word), []
    while (at := _first_pair(word)) is not None:
        if variant == "brackets":
            lines.append((*word[:at], OPEN, *word[at : at + 2], CLOSE, *word[at + 2 :]))
        word = word[:at] + word[at + 2 :]
        lines.append(written(word))
    lines = lines or [written(word)]
    return (*[token for line in lines for token in (EQUALS, *line)][1:], END)


def _first_pair(word: Sequence[int]) -> int | None:
    pairs = (i for i in range(len(word) - 1) if word[i + 1] == inverse(word[i]))
    return next(pairs, None)


def task(letters: int, variant: str) -> Task:
    """Build the task with uniformly random words of `letters` letters; ValueError if the variant is unknown."""
    if variant not in VARIANTS:
        raise ValueError(f"variant: {variant!r} is not one of {', '.join(VARIANTS)}")

    def draw(rng: np.random.Generator) -> Example:
        word = tuple(int(letter) for letter in FIRST + rng.integers(2 * GENERATORS, size=letters))
        tags = frozenset({"changed"}) if _first_pair(word) is not None else frozenset()
        return Example((*word, EQUALS), solution(word, variant), tags)

    # In the longest answer every pair cancels, and each line is shorter by two.
    words = range(letters - 2, -1, -2)
    lines = sum(max(1, left) + 1 + (left + 5 if variant == "brackets" else 0) for left in words)
    longest = letters + 2 if variant == "answer" else max(lines + 1, letters + 2)
    tricks: dict[str, Callable[[Sequence[int]], tuple[int, ...]]] = {
        "copying the question": lambda question: (*question[:-1], END)
    }
    return Task(VOCABULARY, letters + 1 + longest, draw, tricks)
