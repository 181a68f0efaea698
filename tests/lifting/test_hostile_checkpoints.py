"""Checkpoints that are none, or lie about themselves: one line, before anything of their size takes memory."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from pose.errors import PoseError
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.utils.resources import forget_peak, peak_megabytes, resident_megabytes

USUAL = LifterConfig(dim=16, depth=1, heads=2)


@pytest.fixture
def changed(tiny_lifter, tmp_path):
    """The tiny lifter with another configuration, other tensors or other metadata."""

    def write(config=None, tensors=None, metadata=None, spoilt=None):
        known = {"format": "pose-lifter-1", "config": json.dumps(USUAL.to_dict() | (config or {}))}
        known |= metadata or {}
        state = load_file(tiny_lifter) | (tensors or {})
        if spoilt:
            state[spoilt] = torch.full_like(state[spoilt], torch.nan)
        save_file(state, tmp_path / "a.safetensors", {k: v for k, v in known.items() if v is not None})
        return tmp_path / "a.safetensors"

    return write


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"config": None, "metadata": {"config": None}}, "missing or damaged lifter configuration"),
        ({"metadata": {"config": "{"}}, "missing or damaged lifter configuration"),
        ({"metadata": {"config": "[" * 100_000}}, "missing or damaged lifter configuration"),
        ({"metadata": {"config": "null"}}, "missing or damaged lifter configuration"),
        ({"metadata": {"format": None}}, "not a lifter checkpoint written by pose-train"),
        ({"config": {"dim": "16"}}, "dim: expected int, got '16'"),
        ({"config": {"dim": True}}, "dim: expected int, got 'True'"),
        ({"config": {"colour": 1}}, "unknown key 'colour'"),
        ({"config": {"dim": 0}}, "dim: must be 1 to 4096"),
        ({"config": {"dim": 1_000_000_000}}, "dim: must be 1 to 4096"),
        ({"config": {"depth": 10**9}}, "depth: must be 1 to 64"),
        ({"config": {"dim": 4096, "depth": 64}}, "incompatible lifter checkpoint"),
        ({"config": {"hop": 0}}, "window, hop: need 1 <= hop <= window <= 4096, got 81, 0"),
        ({"config": {"window": 10**9}}, "window, hop: need 1 <= hop <= window <= 4096, got 1000000000, 63"),
        ({"config": {"window": 40, "hop": 30, "streaming": True}}, "window, hop: not for streaming lifters"),
        ({"config": {"heads": 3}}, "invalid lifter configuration"),
        ({"config": {"attention": "magic"}}, "invalid lifter configuration"),
        ({"config": {"attention": "local", "attention_options": {"window": 10**12}}}, "is not a value for 'window'"),
        ({"config": {"attention_options": {"wings": 2}}}, "invalid lifter configuration"),
        ({"config": {"norm": "none", "init": "torch"}}, "incompatible lifter checkpoint"),
        ({"tensors": {"more": torch.zeros(3)}}, "incompatible lifter checkpoint"),
        ({"spoilt": "calibration"}, "NaN or Inf weights"),
    ],
)
def test_inconsistent_checkpoint_gives_a_one_line_error(changed, changes, said):
    path = changed(**changes)
    forget_peak()
    before = resident_megabytes()
    with pytest.raises(PoseError) as error:
        load_checkpoint(path)
    assert peak_megabytes() - before < 300
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\xff\xff\xff\xff\xff\xff\xff\x7f{}", b"{" * 100])
def test_non_safetensors_file_gives_a_one_line_error(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(PoseError, match="not a readable lifter checkpoint"):
        load_checkpoint(tmp_path / "a.safetensors")


@pytest.mark.parametrize("attention", ["softmax", "local", "linformer", "performer", "fastformer"])
def test_checkpoint_round_trips_every_mechanism(tmp_path, attention):
    network = LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, attention=attention)).eval()
    save_checkpoint(network, tmp_path / "a.safetensors")
    loaded = load_checkpoint(tmp_path / "a.safetensors")
    assert loaded.config == network.config
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
