"""Parquet: the tidy table of the CSV, typed and compressed, for pandas, Polars, DuckDB and Arrow."""

from pathlib import Path
from typing import Any

import numpy as np

from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.export.table import OBSERVERS, Rows, axes_note, columns, observer_names, rows
from pose.utils.whole_file import whole_file


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the joints of the people with the ids `people` as Parquet, and return notes for the export summary."""
    import pyarrow
    import pyarrow.parquet

    word = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {
        "video": word,
        "joint": word,
        "space": word,
        OBSERVERS: word,
        "frame": pyarrow.int64(),
        "time": pyarrow.float64(),
    }
    types |= {"person": pyarrow.int64()} | dict.fromkeys(("filled", "doubtful", "partial"), pyarrow.bool_())
    fields = [pyarrow.field(name, types.get(name, pyarrow.float32()), nullable=False) for name in columns(recording)]
    axes = axes_note(recording)
    schema = pyarrow.schema(fields, metadata={"axes": axes, "space": recording.space.note, "units": "m, mm, s"})
    with whole_file(target) as hidden, pyarrow.parquet.ParquetWriter(hidden, schema) as writer:
        for part in rows(recording, people):
            writer.write_table(pyarrow.table(_columns(part, recording, pyarrow), schema=schema))
    return [f"metres, {axes}"]


def _columns(part: Rows, recording: Selection, pyarrow: Any) -> dict[str, Any]:
    count, several = part.filled.size, OBSERVERS in columns(recording)
    joints = np.tile(np.arange(len(part.names), dtype=np.int32), len(part.frame))

    def words(names: list[str], which: np.ndarray) -> Any:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(which), pyarrow.array(names))

    zeros = np.zeros(count, np.int32)
    x, y, z, sigma, score = part.values.reshape(count, 5).astype(np.float32).T
    return {
        "video": words([recording.name], zeros),
        "frame": np.repeat(part.frame, len(part.names)),
        "time": np.repeat(part.time, len(part.names)),
        "person": np.repeat(part.person, len(part.names)),
        "joint": words(list(part.names), joints),
        "x": x,
        "y": y,
        "z": z,
        "sigma_mm": sigma,
        "root_sigma_mm": np.repeat(part.root_sigma.astype(np.float32), len(part.names)),
        "score": score,
        "filled": part.filled.reshape(count),
        "doubtful": np.repeat(np.isin(part.person, recording.table.doubtful_ids), len(part.names)),
        "partial": np.repeat(part.partial, len(part.names)),
        "space": words([recording.space.name], zeros),
        **({OBSERVERS: words(observer_names(), part.observers.reshape(count).astype(np.int32))} if several else {}),
    }


FORMAT = SceneFormat(".parquet", write, extra="formats", modules=("pyarrow",), options=("z_up",))
