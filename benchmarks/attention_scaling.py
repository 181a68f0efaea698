"""The table of `docs/attention.md`: time and memory of every attention mechanism over the length of the sequence.

    python benchmarks/attention_scaling.py --json attention_scaling.json

`apps/pose_apps/bench/attention_costs.py` says how it is measured; `pose-bench lifter` prints the same table beside the
lifter's speed.
"""

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

import torch
from pose_apps.bench.attention_costs import LENGTHS, measure_all, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--dim", type=int, default=192)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seconds", type=float, default=0.5, help="of measuring per mechanism and length")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    shape = {"batch": args.batch, "dim": args.dim, "heads": args.heads, "device": args.device}
    costs = measure_all(args.lengths, seconds=args.seconds, **shape)
    print(table(costs, args.lengths))
    if args.json:
        figures = {name: {length: asdict(cost) for length, cost in row.items()} for name, row in costs.items()}
        environment = {"torch": torch.__version__, "processors": os.cpu_count()}
        args.json.write_text(json.dumps(shape | environment | {"costs": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
