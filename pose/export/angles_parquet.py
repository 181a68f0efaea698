"""Parquet: joint angles with uncertainty and foot contacts, one row per person and frame."""

from pathlib import Path

import numpy as np

from pose.body.joint_angles import columns
from pose.body.tracks import Selection
from pose.export.angles import angle_notes, angle_rows
from pose.export.format import Notes, SceneFormat
from pose.utils.whole_file import whole_file

CONTACTS = ("left_contact", "right_contact")


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write joint angles of the people with the ids `people` as Parquet; return notes for the export summary."""
    import pyarrow
    import pyarrow.parquet

    keys = {"frame": pyarrow.int64(), "time": pyarrow.float64(), "person": pyarrow.int64()}
    fields = [pyarrow.field(name, kind, nullable=False) for name, kind in keys.items()]
    fields += [pyarrow.field(name, pyarrow.float32()) for name in (*columns(), *CONTACTS)]
    notes = [*angle_notes(recording), "contacts: probability of ground contact; null without world coordinates"]
    schema = pyarrow.schema(fields, metadata={"space": recording.space.note, "notes": "; ".join(notes)})
    with whole_file(target) as hidden, pyarrow.parquet.ParquetWriter(hidden, schema) as writer:
        for part in angle_rows(recording, people):
            angles = np.stack([part.angles.degrees, part.angles.deviations], axis=2).reshape(len(part.frame), -1)
            values = np.concatenate([angles, part.contacts], axis=1).astype(np.float32)
            cells = [pyarrow.array(column, from_pandas=True) for column in values.T]  # NaN becomes null
            people_of = np.full(len(part.frame), part.person, np.int64)
            writer.write_table(pyarrow.table([part.frame, part.time, people_of, *cells], schema=schema))
    return notes


FORMAT = SceneFormat("-angles.parquet", write, extra="formats", modules=("pyarrow",))
