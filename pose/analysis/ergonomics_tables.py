"""Score tables of RULA and REBA.

RULA: McAtamney and Corlett, Applied Ergonomics 24(2), 1993. REBA: Hignett and McAtamney, Applied Ergonomics 31, 2000.
The index into a table is the score minus 1.
"""

import numpy as np

from pose.structures.types import I64


def _digits(rows: str, *shape: int) -> I64:
    return np.array([int(word) for word in rows.split()], np.int64).reshape(shape)


# Upper arm 1 to 6, lower arm 1 to 3, wrist 1 to 4, wrist twist 1 to 2.
RULA_A = _digits(
    """
    1 2 2 2 2 3 3 3  2 2 2 2 3 3 3 3  2 3 3 3 3 3 4 4
    2 3 3 3 3 4 4 4  3 3 3 3 3 4 4 4  3 4 4 4 4 4 5 5
    3 3 4 4 4 4 5 5  3 4 4 4 4 4 5 5  4 4 4 4 4 5 5 5
    4 4 4 4 4 5 5 5  4 4 4 4 4 5 5 5  4 4 4 5 5 5 6 6
    5 5 5 5 5 6 6 7  5 6 6 6 6 7 7 7  6 6 6 7 7 7 7 8
    7 7 7 7 7 8 8 9  8 8 8 8 8 9 9 9  9 9 9 9 9 9 9 9
    """,
    6, 3, 4, 2,
)  # fmt: skip
# Neck 1 to 6, trunk 1 to 6, legs 1 to 2.
RULA_B = _digits(
    """
    1 3 2 3 3 4 5 5 6 6 7 7
    2 3 2 3 4 5 5 5 6 7 7 7
    3 3 3 4 4 5 5 6 6 7 7 7
    5 5 5 6 6 7 7 7 7 7 8 8
    7 7 7 7 7 8 8 8 8 8 8 8
    8 8 8 8 8 8 8 9 9 9 9 9
    """,
    6, 6, 2,
)  # fmt: skip
# Score C 1 to 8 (and more), score D 1 to 7 (and more).
RULA_C = _digits(
    """
    1 2 3 3 4 5 5
    2 2 3 4 4 5 5
    3 3 3 4 4 5 6
    3 3 3 4 5 6 6
    4 4 4 5 6 7 7
    4 4 5 6 6 7 7
    5 5 6 6 7 7 7
    5 5 6 7 7 7 7
    """,
    8, 7,
)  # fmt: skip
# Neck 1 to 3, trunk 1 to 5, legs 1 to 4.
REBA_A = _digits(
    """
    1 2 3 4  2 3 4 5  2 4 5 6  3 5 6 7  4 6 7 8
    1 2 3 4  3 4 5 6  4 5 6 7  5 6 7 8  6 7 8 9
    3 3 5 6  4 5 6 7  5 6 7 8  6 7 8 9  7 8 9 9
    """,
    3, 5, 4,
)  # fmt: skip
# Lower arm 1 to 2, upper arm 1 to 6, wrist 1 to 3.
REBA_B = _digits(
    """
    1 2 2  1 2 3  3 4 5  4 5 5  6 7 8  7 8 8
    1 2 3  2 3 4  4 5 5  5 6 7  7 8 8  8 9 9
    """,
    2, 6, 3,
)  # fmt: skip
# Score A 1 to 12, score B 1 to 12.
REBA_C = _digits(
    """
    1 1 1 2 3 3 4 5 6 7 7 7
    1 2 2 3 4 4 5 6 6 7 7 8
    2 3 3 3 4 5 6 7 7 8 8 8
    3 4 4 4 5 6 7 8 8 9 9 9
    4 4 4 5 6 7 8 8 9 9 9 9
    6 6 6 7 8 8 9 9 10 10 10 10
    7 7 7 8 9 9 9 10 10 11 11 11
    8 8 8 9 10 10 10 10 10 11 11 11
    9 9 9 10 10 10 11 11 11 12 12 12
    10 10 10 11 11 11 11 12 12 12 12 12
    11 11 11 11 12 12 12 12 12 12 12 12
    12 12 12 12 12 12 12 12 12 12 12 12
    """,
    12, 12,
)  # fmt: skip


def rula(
    upper_arm: I64, lower_arm: I64, wrist: I64, twist: I64, neck: I64, trunk: I64, legs: I64,
    arm_use: int = 0, arm_force: int = 0, body_use: int = 0, body_force: int = 0,
) -> I64:  # fmt: skip
    """Return RULA grand scores (T,), 1 to 7, from the scores of the body parts."""
    a = RULA_A[upper_arm - 1, lower_arm - 1, wrist - 1, twist - 1] + arm_use + arm_force
    b = RULA_B[neck - 1, trunk - 1, legs - 1] + body_use + body_force
    result: I64 = RULA_C[np.minimum(a, 8) - 1, np.minimum(b, 7) - 1]
    return result


def reba(
    neck: I64, trunk: I64, legs: I64, upper_arm: I64, lower_arm: I64, wrist: I64,
    load: int = 0, coupling: int = 0, activity: int = 0,
) -> I64:  # fmt: skip
    """Return REBA scores (T,), 1 to 15, from the scores of the body parts."""
    a = np.minimum(REBA_A[neck - 1, trunk - 1, legs - 1] + load, 12)
    b = np.minimum(REBA_B[lower_arm - 1, upper_arm - 1, wrist - 1] + coupling, 12)
    result: I64 = REBA_C[a - 1, b - 1] + activity
    return result
