"""What each distribution of `attention: composed` costs beside softmax put together the same way, in one run, and
of `attention: softmax`, whose kernel is fused.

    python benchmarks/attention_distributions.py --length 243

One layer of 192 features and 6 heads, two sequences, one thread; processor time, the least of several rounds in which
all take turns.
"""

import argparse
import time
from collections.abc import Callable

import torch

from pose.lifting.attention import Attention, Context, build_attention
from pose.training.attention.distributions import DISTRIBUTIONS


def milliseconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return 1e3 * (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=243, help="frames")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", nargs="+", default=[name for name in DISTRIBUTIONS if name != "ratio"])
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(2, args.length, 192)
    times = torch.arange(args.length, dtype=torch.float64).expand(2, -1) / 30
    phases = Context.from_times(times, 32)

    def forward(layer: Attention) -> torch.Tensor:
        return layer(x, Context(phases.cos, phases.sin, None, times))  # a new one, so that making the masks counts

    names = list(dict.fromkeys(["softmax", *args.only]))
    layers = {name: build_attention("composed", 192, 6, distribution=name) for name in names}
    layers["softmax, fused"] = build_attention("softmax", 192, 6)
    best = dict.fromkeys(layers, (float("inf"), float("inf")))
    for _ in range(args.rounds):
        for name, layer in layers.items():
            layer.eval()
            with torch.inference_mode():
                alone = milliseconds(lambda layer=layer: forward(layer))
            layer.train()
            trained = milliseconds(lambda layer=layer: forward(layer).square().sum().backward())
            best[name] = (min(best[name][0], alone), min(best[name][1], trained))
    print("| distribution | forward, ms | times softmax | with backward, ms | times softmax |\n|---|---|---|---|---|")
    for name, (alone, trained) in best.items():
        ratios = (alone / best["softmax"][0], trained / best["softmax"][1])
        print(f"| {name} | {alone:.1f} | {ratios[0]:.2f} | {trained:.1f} | {ratios[1]:.2f} |")


if __name__ == "__main__":
    main()
