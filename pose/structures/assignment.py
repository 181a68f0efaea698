"""Optimal assignment of rows to columns of a matrix by shortest augmenting paths.

Source: R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
problems", Computing 38, 1987. Rows are added one by one, as in D. F. Crouse, "On implementing 2D rectangular assignment
algorithms", IEEE Transactions on Aerospace and Electronic Systems 52, 2016.
"""

import numpy as np

from pose.structures.types import F64


def best_pairs(similarity: F64, *, min_similarity: float, score: F64 | None = None) -> list[tuple[int, int]]:
    """Return pairs (row, column) of maximum total score in (N, M), without those below `min_similarity`."""
    score = similarity if score is None else score
    if score.shape[0] > score.shape[1]:
        pairs = [(row, column) for column, row in enumerate(_columns(-score.T))]
    else:
        pairs = list(enumerate(_columns(-score)))
    return sorted((row, column) for row, column in pairs if similarity[row, column] >= min_similarity)


def _columns(cost: F64) -> list[int]:
    """Return the column of each row in the assignment with the minimum total cost, for `cost` (N, M) with N <= M."""
    # Dual variables: cost - row_dual - column_dual >= 0.
    row_dual, column_dual = np.zeros(cost.shape[0]), np.zeros(cost.shape[1])
    owner = np.full(cost.shape[1], -1)  # the row assigned to a column
    for new_row in range(cost.shape[0]):
        distance = np.full(cost.shape[1], np.inf)  # path length from the new row to each column, in reduced costs
        predecessor = np.full(cost.shape[1], -1)  # the previous column of the path; -1: the new row itself
        reached = np.zeros(cost.shape[1], bool)
        row, column, travelled = new_row, -1, 0.0
        while row >= 0:  # until an unassigned column is reached
            through = travelled + cost[row] - row_dual[row] - column_dual
            nearer = ~reached & (through < distance)
            distance[nearer], predecessor[nearer] = through[nearer], column
            column = int(np.argmin(np.where(reached, np.inf, distance)))
            travelled, reached[column] = distance[column], True
            row = owner[column]
        visited = reached & (owner >= 0)
        row_dual[new_row] += travelled
        row_dual[owner[visited]] += travelled - distance[visited]
        column_dual[reached] -= travelled - distance[reached]
        while column >= 0:  # shift the assignments along the path
            previous = int(predecessor[column])
            owner[column] = new_row if previous < 0 else owner[previous]
            column = previous
    return [int(np.flatnonzero(owner == row)[0]) for row in range(cost.shape[0])]
