"""Time and memory of attention mechanisms by sequence length, relative to softmax attention in the same run.

On a CPU, the time is the processor time of one thread, and the shortest of several passes, so that other load has
little effect. On a GPU, it is device time. Memory is the peak during a forward pass, minus input and weights.

On a CPU, every measurement runs in a separate process (Linux only), which is forked before torch starts threads.
"""

import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field

import torch

import pose.training.research  # noqa: F401  adds mechanisms by name
from pose.lifting.attention import ATTENTIONS, Attention, Context, Option, build_attentions, share_maps
from pose.lifting.format import JOINTS
from pose.training.attention.blocks import BlockAttention, NeighbourhoodAttention
from pose.training.forms.joints import joints_within_hops
from pose.utils.resources import forget_peak, peak_megabytes, resident_megabytes

LENGTHS = (27, 81, 243, 1024, 4096)
LINFORMER_ROWS = 64


@dataclass(frozen=True, slots=True)
class Form:
    """Variant of an attention mechanism to measure. It is bidirectional unless `causal` is True."""

    name: str  # name of the mechanism in `ATTENTIONS`
    options: dict[str, Option] = field(default_factory=dict)  # options of the mechanism
    causal: bool = False  # whether frames attend to earlier frames only
    shared: int = 1  # number of layers that share one attention map
    joints: bool = False  # whether to use one token per joint, with attention over time within each joint
    hops: int = 0  # maximum distance, in bones, between joints that attend to each other

    def at(self, length: int) -> dict[str, Option]:
        """Return the options for a length in frames, on which some depend as in the papers."""
        if self.name == "linformer":
            return self.options | {"max_length": length, "compression": max(1, length // LINFORMER_ROWS)}
        if self.name == "sparse":
            return self.options | {"stride": round(length**0.5)}
        return self.options

    def layers(self, length: int, dim: int, heads: int) -> list[Attention]:
        """Build as many attention layers as share one attention map."""
        layers = build_attentions(self.name, self.shared, dim, heads, self.at(length), causal=self.causal)
        if self.hops:
            (inner,) = layers
            assert isinstance(inner, BlockAttention)
            return [NeighbourhoodAttention(inner, joints_within_hops(self.hops))]
        return share_maps(layers, self.shared)


FORMS: dict[str, Form] = {
    "softmax": Form("softmax"),  # first, because the others are relative to it
    **{name: Form(name, {}, not kind.capabilities.bidirectional) for name, kind in ATTENTIONS.items()},
    "softmax, causal": Form("softmax", {}, True),
    "local, causal": Form("local", {}, True),
    "local, dilation by head": Form("local", {"window": 14, "dilation": "1,1,2,2,4,4"}),
    "sparse, causal": Form("sparse", {}, True),
    "sparse, fixed": Form("sparse", {"pattern": "fixed"}),
    "sparse, by heads": Form("sparse", {"arrange": "heads"}),
    "adaptive-span, causal": Form("adaptive-span", {}, True),
    "blocks, causal": Form("blocks", {}, True),
    "transformer-xl, causal": Form("transformer-xl", {}, True),
    "reformer, 1 round": Form("reformer", {"rounds": 1}),
    "local, own global frame": Form("local", {"global_tokens": 1, "global_projections": "own"}),
    "softmax, map shared by 2": Form("softmax", shared=2),
    "softmax, 17 joints": Form("softmax", joints=True),
    "blocks, 17 joints, 1 bone": Form("blocks", joints=True, hops=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCase:
    """Measurement of one variant of an attention mechanism."""

    name: str  # name of the variant in `FORMS`
    length: int  # sequence length, frames
    batch: int  # number of sequences
    dim: int  # number of features
    heads: int
    device: str  # device of the measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one forward pass of one layer."""

    milliseconds: float  # time, ms
    megabytes: float  # peak memory minus input and weights, MB


def prepare(case: LayerCase) -> Callable[[], torch.Tensor]:
    """Return a function that runs the case's layers without gradients and returns the last output."""
    torch.manual_seed(0)
    form = FORMS[case.name]
    layers = [layer.to(case.device).eval() for layer in form.layers(case.length, case.dim, case.heads)]
    batch = case.batch * (JOINTS if form.joints else 1)
    x = torch.randn(batch, case.length, case.dim, device=case.device)
    times = torch.arange(case.length, dtype=torch.float64, device=case.device).expand(batch, -1) / 30
    cos_sin = Context.from_times(times, case.dim // case.heads)

    @torch.inference_mode()
    def run() -> torch.Tensor:
        context = Context(cos_sin.cos, cos_sin.sin, None, times)  # new, so that the time includes building masks
        for layer in layers:
            y = layer(x, context)
        result: torch.Tensor = y
        return result

    return run


def measure_cpu(case: LayerCase, seconds: float) -> Cost:
    """Measure the shortest time and the memory of several forward passes on one CPU thread."""
    torch.set_num_threads(1)
    tiny = LayerCase(**(asdict(case) | {"length": 2}))
    prepare(tiny)()  # warm-up
    run = prepare(case)
    before = resident_megabytes()
    forget_peak()
    run()
    peak = peak_megabytes()
    assert before is not None, "Linux only"
    assert peak is not None
    best, spent = float("inf"), 0.0
    while spent < seconds:
        start = time.process_time()
        run()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
    grown = max(0.0, peak - before)  # page counts are delayed and may decrease
    return Cost(milliseconds=1e3 * best / FORMS[case.name].shared, megabytes=grown)


def measure_cuda(case: LayerCase, seconds: float) -> Cost:
    """Measure the shortest time and the memory of several forward passes on a GPU."""
    run = prepare(case)
    run()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    peak = torch.cuda.max_memory_allocated() - before
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return Cost(milliseconds=best / FORMS[case.name].shared, megabytes=peak / 2**20)


def measure(case: LayerCase, seconds: float) -> Cost:
    """Measure time and memory of a forward pass on the device of the case, a CPU (in a new process) or a GPU."""
    if case.device != "cpu":
        return measure_cuda(case, seconds)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(measure_cpu, (case, seconds))


def table(costs: dict[str, dict[int, Cost]], lengths: list[int]) -> str:
    """Return a Markdown table of costs relative to softmax, which has ms and MB, and of break-even lengths."""
    lines = ["| mechanism | " + " | ".join(f"T {length}" for length in lengths) + " | faster from |"]
    lines.append("|---" * (len(lengths) + 2) + "|")
    for name, row in costs.items():
        cells, base = [], costs["softmax"]
        for length in lengths:
            if length not in row:
                cells.append("-")
                continue
            cost, reference = row[length], base[length]
            if name == "softmax":
                cells.append(f"{cost.milliseconds:.2f} ms, {cost.megabytes:.1f} MB")
            else:
                memory = cost.megabytes / max(reference.megabytes, 0.1)
                cells.append(f"{cost.milliseconds / reference.milliseconds:.2f}, {memory:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {_faster_from(row, base) or '-'} |")
    return "\n".join(lines)


def _faster_from(row: dict[int, Cost], base: dict[int, Cost]) -> int | None:
    """Return the shortest measured length from which `row` is always faster than `base`; None if there is none."""
    found = None
    for length in sorted(row, reverse=True):
        if row[length].milliseconds >= base[length].milliseconds:
            break
        found = length
    return found


def measure_all(
    lengths: Sequence[int] = LENGTHS,
    *,
    batch: int = 2,
    dim: int = 192,
    heads: int = 6,
    device: str = "cpu",
    seconds: float = 0.5,
    max_seconds: float = math.inf,
    names: Iterable[str] = FORMS,
) -> dict[str, dict[int, Cost]]:
    """Measure attention mechanisms at every length; return costs by variant and length."""
    # Lengths are skipped if quadratic extrapolation from a shorter one exceeds `max_seconds`.

    def costs(name: str) -> dict[int, Cost]:
        row: dict[int, Cost] = {}
        for length in sorted(lengths):
            if row and 1e-3 * row[max(row)].milliseconds * (length / max(row)) ** 2 > max_seconds:
                break
            case = LayerCase(name=name, length=length, batch=batch, dim=dim, heads=heads, device=device)
            row[length] = measure(case, seconds)
        return row

    return {name: costs(name) for name in names}
