"""The recorded skeletons of a subject of the motion capture, trial after trial, for benchmarks that need its bones."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets import asf_amc

F64 = NDArray[np.float64]
EVERY = 4  # of 120 frames a second


def amc_trials(archive: Path, subject: str) -> Iterator[tuple[str, asf_amc.AsfSkeleton, dict[str, F64]]]:
    """Name, skeleton and motion of every trial in a subject's ZIP file, 30 frames a second."""
    with zipfile.ZipFile(archive) as files:
        skeletons = {Path(name).stem: name for name in files.namelist() if name.endswith(".asf")}
        for name in (n for n in sorted(files.namelist()) if n.endswith(".amc")):
            own = skeletons.get(Path(name).stem, skeletons.get(subject, ""))
            skeleton = asf_amc.parse_asf(files.read(own).decode(), own)
            motion = asf_amc.parse_amc(files.read(name).decode(), skeleton, name)
            yield name, skeleton, {bone: values[::EVERY] for bone, values in motion.items()}
