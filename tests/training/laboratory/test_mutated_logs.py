"""Logs of experiments of which bytes and values are changed: their table is drawn, or they are refused in one line."""

import json
from dataclasses import asdict

from hypothesis import strategies as st
from mutations import damaged, one_line, other_value, quick_and_long, try_mutations
from test_tables import EXPERIMENT, record

from pose.errors import PoseError
from pose.training.laboratory.log import TrialLog
from pose.training.laboratory.table import format_section, format_total

LINES = [asdict(record("dot", seed, 1.0 + seed)) for seed in range(2)]


@quick_and_long(20, 5000)
def test_mutated_logs(tmp_path, examples):
    path = TrialLog(tmp_path, "widths").path

    def check(data: st.DataObject) -> None:
        text = "".join(f"{json.dumps(other_value(data, line))}\n" for line in LINES).encode()
        path.write_bytes(text if data.draw(st.booleans()) else damaged(data, text))
        try:
            format_section(EXPERIMENT, tmp_path)
            format_total({"widths": EXPERIMENT}, tmp_path)
        except PoseError as error:
            one_line(error)

    try_mutations(check, examples)
