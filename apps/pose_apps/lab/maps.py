"""`pose-lab maps`: draw the attention maps of all heads of a lifter for a clip, with their entropy and reach."""

from dataclasses import astuple
from pathlib import Path

import torch

import pose.training.research  # noqa: F401  adds mechanisms and forms by name
from pose.errors import PoseError, UsageError
from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.features import observe
from pose.lifting.predict import checkpoint_path, network_inputs
from pose.results.keypoints import read_keypoints
from pose.training.laboratory.attention_maps import HeadMetrics, attention_maps, head_metrics, next_layer_distances
from pose.utils.whole_file import whole_file
from pose.utils.written_files import writing


def draw(checkpoint: str, clip: Path, start: int, frames: int, out: Path) -> str:
    """Draw attention maps of a lifter for a clip to an image file, and return a table of entropy and reach.

    Raises:
        UsageError: If `start` and `frames` select fewer than two frames.
        PoseError: If the network has no attention maps.
    """
    if start < 0 or frames < 2:
        raise UsageError("--start must be at least 0 and --frames at least 2")
    sequence = read_keypoints(clip)[start : start + frames]
    if len(sequence) < 2:
        raise UsageError(f"--start {start}: {clip} has fewer than two frames from there on")
    network = load_checkpoint(checkpoint_path(checkpoint))
    keypoints, scores, times, *camera = (torch.from_numpy(array) for array in network_inputs([sequence]).values())
    try:
        maps = attention_maps(network, observe(keypoints, scores, times, *camera), times)
    except ValueError as error:
        raise PoseError(f"{checkpoint}: {error}") from error
    metrics = head_metrics(maps, times)
    _picture(maps[:, 0], metrics, times[0], out)
    return _table(metrics, next_layer_distances(maps) if len(maps) > 1 else None) + f"\n\n{out}"


def _table(metrics: HeadMetrics, distances: torch.Tensor | None) -> str:
    lines = [
        "| block | head | entropy, bits | effective frames | reach, s | within 0.15 s, % | rank | to the next block |",
        "|---|---|---|---|---|---|---|---|",
    ]
    layers, heads = metrics.entropy.shape
    for layer in range(layers):
        for head in range(heads):
            entropy, seen, reach, near, rank = (float(part[layer, head]) for part in astuple(metrics))
            nearest = "" if distances is None or layer == layers - 1 else f"{distances[layer, head].min():.2f}"
            lines.append(
                f"| {layer + 1} | {head + 1} | {entropy:.2f} | {seen:.1f} | {reach:.3f} | {100 * near:.0f} "
                f"| {rank:.0f} | {nearest} |"
            )
    return "\n".join(lines) + "\n\nto the next block: Jensen-Shannon distance to its most similar head, 0 to 1"


def _picture(maps: torch.Tensor, metrics: HeadMetrics, times: torch.Tensor, out: Path) -> None:
    """Draw attention maps (L, H, T, T) of layers and heads, rows are queries, to an image file."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PoseError('pose-lab maps needs matplotlib: pip install "pose-run[train]"') from error
    layers, heads = maps.shape[:2]
    figure = Figure(figsize=(1.9 * heads + 0.6, 2.05 * layers + 0.6), layout="constrained")
    span = (0.0, float(times[-1] - times[0]))
    for layer, row in enumerate(figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)):
        for head, axes in enumerate(row):
            shown = maps[layer, head].abs().sqrt().numpy()
            axes.imshow(shown, extent=(*span, *span[::-1]), cmap="magma")
            axes.set_title(
                f"{layer + 1}.{head + 1}: {metrics.entropy[layer, head]:.1f} bits, {metrics.reach[layer, head]:.2f} s",
                fontsize=8,
            )
            axes.tick_params(labelsize=7)
    figure.supxlabel("key time, s; brightness: square root of the weight", fontsize=9)
    figure.supylabel("query time, s", fontsize=9)
    with writing([out]), whole_file(out) as hidden:
        figure.savefig(hidden, dpi=80, format=out.suffix.removeprefix(".") or "png")
