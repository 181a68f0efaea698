"""Time and memory of every attention mechanism over the length of the sequence, as ratios to softmax of the same run.

Time on a CPU is the processor's, of one thread (the fastest of several runs), so that other work on the machine hardly
shows; on a GPU it is the device's. Memory is what a forward pass needs beyond its input and weights, at its peak. On a
CPU every measurement runs in a process of its own (Linux only), forked before anything else has used torch's threads.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch

from pose.attention import ATTENTIONS, Context, Option, build_attentions
from pose_apps.support.memory import forget_peak, peak_megabytes, resident_megabytes

LENGTHS = (27, 81, 243, 1024, 4096)
LINFORMER_ROWS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measurement: a layer of `dim` features and `heads` heads on `batch` sequences of `length` frames."""

    name: str
    length: int
    batch: int
    dim: int
    heads: int
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    milliseconds: float
    megabytes: float


def prepare(case: Case) -> Callable[[], torch.Tensor]:
    """A forward pass without gradients, ready to run."""
    torch.manual_seed(0)
    options: dict[str, Option] = {}
    if case.name == "linformer":
        options = {"max_length": case.length, "compression": max(1, case.length // LINFORMER_ROWS)}
    causal = not ATTENTIONS[case.name].capabilities.bidirectional
    (layer,) = build_attentions(case.name, 1, case.dim, case.heads, options, causal=causal)
    layer = layer.to(case.device).eval()
    x = torch.randn(case.batch, case.length, case.dim, device=case.device)
    times = torch.arange(case.length, dtype=torch.float64, device=case.device).expand(case.batch, -1) / 30
    cos_sin = Context.from_times(times, case.dim // case.heads)

    @torch.inference_mode()
    def run() -> torch.Tensor:
        return layer(x, Context(cos_sin.cos, cos_sin.sin))  # a new one, so that making the masks counts

    return run


def measure_cpu(case: Case, seconds: float) -> Cost:
    torch.set_num_threads(1)
    tiny = Case(**(asdict(case) | {"length": 2}))
    prepare(tiny)()  # what torch sets up once
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
    return Cost(milliseconds=1e3 * best, megabytes=peak - before)


def measure_cuda(case: Case, seconds: float) -> Cost:
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
    return Cost(milliseconds=best, megabytes=peak / 2**20)


def measure(case: Case, seconds: float) -> Cost:
    """Measure for at least so many seconds."""
    if case.device != "cpu":
        return measure_cuda(case, seconds)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(measure_cpu, (case, seconds))


def table(costs: dict[str, dict[int, Cost]], lengths: list[int]) -> str:
    """Markdown: per length the ratio of time to softmax's, and of memory; softmax itself in ms and MB."""
    lines = ["| mechanism | " + " | ".join(f"T {length}" for length in lengths) + " | faster from |"]
    lines.append("|---" * (len(lengths) + 2) + "|")
    for name, row in costs.items():
        cells, base = [], costs["softmax"]
        for length in lengths:
            cost, reference = row[length], base[length]
            if name == "softmax":
                cells.append(f"{cost.milliseconds:.2f} ms, {cost.megabytes:.1f} MB")
            else:
                memory = cost.megabytes / max(reference.megabytes, 0.1)
                cells.append(f"{cost.milliseconds / reference.milliseconds:.2f}, {memory:.2f}")
        faster = [length for length in lengths if row[length].milliseconds < base[length].milliseconds]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {min(faster) if faster else '-'} |")
    return "\n".join(lines)


def measure_all(
    lengths: Sequence[int] = LENGTHS,
    *,
    batch: int = 2,
    dim: int = 192,
    heads: int = 6,
    device: str = "cpu",
    seconds: float = 0.5,
) -> dict[str, dict[int, Cost]]:
    """The cost of every mechanism at every length. seconds: of measuring each."""

    def cost(name: str, length: int) -> Cost:
        return measure(Case(name=name, length=length, batch=batch, dim=dim, heads=heads, device=device), seconds)

    return {name: {length: cost(name, length) for length in lengths} for name in ATTENTIONS}
