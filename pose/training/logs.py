"""Logs of a training run: CSV files, and TensorBoard if it is installed."""

import csv
from pathlib import Path
from typing import TextIO

from pose.utils.whole_file import whole_file


class TrainingLog:
    """Log in `training.csv`, `evaluation.csv` and TensorBoard, if installed, without rows after `step`."""

    def __init__(self, folder: Path, step: int) -> None:
        self._folder, self._step = folder, step
        self._files: dict[str, TextIO] = {}
        self._writers: dict[str, csv.DictWriter[str]] = {}
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._board = None
        else:
            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step)

    def training(self, step: int, metrics: dict[str, float]) -> None:
        """Log metrics of a training step."""
        self._row("training", step, metrics)

    def evaluation(self, step: int, metrics: dict[str, float]) -> None:
        """Log metrics of an evaluation."""
        self._row("evaluation", step, metrics)

    def _row(self, name: str, step: int, metrics: dict[str, float]) -> None:
        row = {"step": step} | {key: round(value, 6) for key, value in metrics.items()}
        if name not in self._writers:
            self._open(name, list(row))
        self._writers[name].writerow(row)
        self._files[name].flush()
        if self._board:
            for key, value in metrics.items():
                self._board.add_scalar(f"{name}/{key}", value, step)

    def _open(self, name: str, columns: list[str]) -> None:
        path = self._folder / f"{name}.csv"
        earlier_rows: list[dict[str, str]] = []
        if path.is_file() and self._step:
            with path.open(newline="") as file:
                earlier_rows = [row for row in csv.DictReader(file) if int(row["step"]) <= self._step]
        with whole_file(path) as hidden, hidden.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(earlier_rows)
        file = self._files[name] = path.open("a", newline="")
        self._writers[name] = csv.DictWriter(file, columns, extrasaction="ignore")

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        if self._board:
            self._board.close()
