"""The best assignment of rows to columns, by shortest augmenting paths.

R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems",
Computing 38, 1987; the rows are taken one by one, as D. F. Crouse describes for rectangular matrices ("On implementing
2D rectangular assignment algorithms", IEEE Transactions on Aerospace and Electronic Systems 52, 2016).
"""

import numpy as np

from pose.types import F64


def best_pairs(similarity: F64, *, at_least: float, worth: F64 | None = None) -> list[tuple[int, int]]:
    """Pairs (row, column) of the assignment with the greatest total, those below `at_least` left out, by rows.

    similarity: (N, M). worth: (N, M) whose total is made the greatest; the similarity itself unless given.
    """
    worth = similarity if worth is None else worth
    if worth.shape[0] > worth.shape[1]:
        pairs = [(row, column) for column, row in enumerate(_columns(-worth.T))]
    else:
        pairs = list(enumerate(_columns(-worth)))
    return sorted((row, column) for row, column in pairs if similarity[row, column] >= at_least)


def _columns(cost: F64) -> list[int]:
    """The column of each row in the assignment of least total cost (N, M), N <= M."""
    of_row, of_column = np.zeros(cost.shape[0]), np.zeros(cost.shape[1])  # dual prices: cost - of_row - of_column >= 0
    owner = np.full(cost.shape[1], -1)  # the row that has a column
    for newcomer in range(cost.shape[0]):
        distance = np.full(cost.shape[1], np.inf)  # of each column from the newcomer, in reduced cost
        came_by = np.full(cost.shape[1], -1)  # the column whose owner the path goes through; -1: the newcomer itself
        reached = np.zeros(cost.shape[1], bool)
        row, column, travelled = newcomer, -1, 0.0
        while row >= 0:  # until a column is reached that is nobody's
            through = travelled + cost[row] - of_row[row] - of_column
            nearer = ~reached & (through < distance)
            distance[nearer], came_by[nearer] = through[nearer], column
            column = int(np.argmin(np.where(reached, np.inf, distance)))
            travelled, reached[column] = distance[column], True
            row = owner[column]
        visited = reached & (owner >= 0)
        of_row[newcomer] += travelled
        of_row[owner[visited]] += travelled - distance[visited]
        of_column[reached] -= travelled - distance[reached]
        while column >= 0:  # everybody on the path moves up by one
            previous = int(came_by[column])
            owner[column] = newcomer if previous < 0 else owner[previous]
            column = previous
    return [int(np.flatnonzero(owner == row)[0]) for row in range(cost.shape[0])]
