"""The table of `docs/studies/attention.md`: time and memory of every attention mechanism over the length of the
sequence.

    python benchmarks/attention_scaling.py --json attention_scaling.json --write docs/studies/attention.md

`apps/pose_apps/bench/attention_costs.py` says how it is measured; `pose-bench lifter` prints the same table beside the
lifter's speed.
"""

import argparse
import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import torch
from pose_apps.bench.attention_costs import FORMS, LENGTHS, measure_all, table

BEGIN, END = "<!-- attention costs -->", "<!-- attention costs end -->"


def with_rows(old: str, measured: str) -> str:
    """A table with the rows of another in place of its own of that name, new ones at its end; softmax, which the others
    are compared with, stays."""
    rows = {line.split(" | ")[0]: line for line in old.strip().splitlines()}
    return "\n".join((rows | {line.split(" | ")[0]: line for line in measured.splitlines()[3:]}).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--dim", type=int, default=192)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seconds", type=float, default=0.5, help="of measuring per mechanism and length")
    parser.add_argument("--most", type=float, default=math.inf, help="seconds of a pass; longer ones are left out")
    parser.add_argument(
        "--only", nargs="+", choices=FORMS, help="rows to measure beside softmax; others stay as they are"
    )
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--write", type=Path, help="a page whose table between the two marks is to be this one")
    args = parser.parse_args()
    shape = {"batch": args.batch, "dim": args.dim, "heads": args.heads, "device": args.device}
    names = dict.fromkeys(["softmax", *args.only]) if args.only else FORMS
    costs = measure_all(args.lengths, seconds=args.seconds, max_seconds=args.most, names=names, **shape)
    measured = table(costs, args.lengths)
    print(measured)
    if args.write:
        before, _, rest = args.write.read_text().partition(BEGIN)
        old, _, after = rest.partition(END)
        assert after, f"{args.write}: has no {BEGIN} ... {END}"
        args.write.write_text(f"{before}{BEGIN}\n{with_rows(old, measured) if args.only else measured}\n{END}{after}")
    if args.json:
        figures = {name: {length: asdict(cost) for length, cost in row.items()} for name, row in costs.items()}
        environment = {"torch": torch.__version__, "processors": os.cpu_count()}
        args.json.write_text(json.dumps(shape | environment | {"costs": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
