"""Joint tokens, highway residuals and adaptive depth: what a lifter of them is, and on its way through the tools."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting import model as networks
from pose.lifting.attention import Context
from pose.lifting.backends import OnnxGraph
from pose.lifting.blocks import Block, Highway
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import MAX_JOINT_HOPS, LifterConfig
from pose.lifting.exchange import export_lifter
from pose.lifting.format import FEATURES, JOINTS
from pose.lifting.model import LifterNetwork, attention_blocks
from pose.lifting.onnx_lifter import OnnxLifter
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.skeletons import H36M17
from pose.training.forms.adaptive import AdaptiveBlock, ponder_cost
from pose.training.forms.joints import (
    HierarchicalEmbedding,
    JointAttention,
    JointBlock,
    JointEmbedding,
    JointHead,
    joints_within_hops,
)
from pose.training.laboratory.tasks.model import TokenModel
from pose.training.objectives.pretraining import check_objective
from pose.training.trainer import Trainer

sys.path += [str(Path(__file__).parents[1] / "training"), str(Path(__file__).parents[1] / "datasets")]
from motion import waving_clip
from training_fixtures import source_of, train_config

SMALL = {"dim": 16, "depth": 2, "heads": 2}
BLOCKS = {"tokens": "joints", "attention": "blocks", "attention_options": {"block": 3, "beyond": 2}}
FORMS = {
    "joints": {"tokens": "joints"},
    "joints along bones": {"tokens": "joints", "skeleton_mask": True, "norm": "post"},
    "neighbourhoods": BLOCKS | {"joint_hops": 2},
    "neighbourhoods without norm": BLOCKS | {"joint_hops": 1, "norm": "none", "residual": "highway"},
    "hierarchical": {"tokens": "hierarchical", "depth": 2},
    "highway": {"residual": "highway"},
    "no residual": {"residual": "none", "norm": "post"},
    "adaptive": {"adaptive_depth": True, "depth": 3},
    "adaptive, hierarchical, highway": {
        "adaptive_depth": True,
        "depth": 2,
        "tokens": "hierarchical",
        "residual": "highway",
    },
}
every_form = pytest.mark.parametrize("changes", FORMS.values(), ids=FORMS)


def randomized(**changes) -> LifterNetwork:
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig(**(SMALL | changes)))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return network.eval()


def tokens(length: int = 6) -> tuple[torch.Tensor, Context]:
    """Frame tokens (2, T, 16) and their context."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, length, 16, generator=generator)
    return x, Context.from_times(torch.arange(length).expand(2, -1) / 30, 8)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return source_of([waving_clip()], tmp_path_factory.mktemp("motion"))


@every_form
@pytest.mark.parametrize("streaming", [False, True])
def test_every_token_form_trains_and_round_trips(changes, streaming, source, tmp_path):
    config = train_config(model=LifterConfig(**(SMALL | changes), streaming=streaming), steps=3)
    losses: list[dict[str, float]] = []
    trainer = Trainer(config, source, tmp_path)
    trainer.run(lambda step, figures: losses.append(figures))
    assert all(np.isfinite(figures["loss"]) for figures in losses)
    assert all(("ponder" in figures) == bool(changes.get("adaptive_depth")) for figures in losses)
    saved = load_checkpoint(tmp_path / "last.safetensors")
    for name, tensor in trainer.averaged_network.state_dict().items():
        assert saved.state_dict()[name].equal(tensor), name
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in trainer.network.parameters())


@every_form
def test_stream_equals_the_whole_sequence(changes, make_walk):
    lifter, sequence = TorchLifter(randomized(**changes, streaming=True), "test"), make_walk(20, skeleton="h36m17")
    for lookahead in (0, 2):
        whole = lifter.lift(sequence, lookahead)
        stream = LifterStream(lifter, H36M17, sequence.camera, lookahead)
        person = stream.new_person()
        answers = []
        for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
            answers += stream.step([person], keypoints[None], scores[None], time)
        stepped = np.stack([answer for answer in answers if answer is not None])
        assert len(stepped) == 20 - lookahead
        np.testing.assert_allclose(stepped[:, :51], whole.joints[: len(stepped)].reshape(-1, 51), atol=2e-4)


@pytest.mark.slow  # ten seconds and more each
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_exports_to_onnx(name, streaming, make_walk, tmp_path):
    network, sequence = randomized(**({"depth": 1} | FORMS[name]), streaming=streaming), make_walk(30)
    assert export_lifter(network, "onnx", tmp_path / "a.onnx") < 1e-4
    want = TorchLifter(network, "test").lift(sequence).joints
    exported = OnnxLifter(OnnxGraph(tmp_path / "a.onnx"), "test")
    np.testing.assert_allclose(exported.lift(sequence).joints, want, atol=1e-3)


@every_form
def test_a_stream_of_every_form_does_not_see_the_future(changes, make_walk):
    lifter, sequence = TorchLifter(randomized(**changes, streaming=True), "test"), make_walk(20)
    later = sequence.keypoints.copy()
    later[12:] += 40
    want, got = (lifter.forward([replace(sequence, keypoints=k)])[0] for k in (sequence.keypoints, later))
    np.testing.assert_allclose(got[:12], want[:12], atol=1e-5)
    assert np.abs(got[12:] - want[12:]).max() > 1e-3


def test_a_joint_sees_itself_and_its_frame():
    embed = JointEmbedding(LifterConfig(**SMALL, tokens="joints"))
    features = torch.randn(2, 5, FEATURES)
    changed = features.clone()
    changed[..., 2 * 3 : 2 * 4] += 1  # the offset of joint 3
    different = (embed(changed) - embed(features)).abs().amax(dim=(0, 1, 3)) > 1e-6
    assert different.tolist() == [joint == 3 for joint in range(JOINTS)]
    changed[..., -1] += 1
    assert ((embed(changed) - embed(features)).abs().amax(dim=-1) > 1e-6).all()


def test_joint_stream_token_contains_frame_and_age():
    embed = JointEmbedding(LifterConfig(**SMALL, tokens="joints", streaming=True))
    features = torch.randn(2, 5, 2 * FEATURES + 1)
    for column, joints in ((FEATURES + 6, [3]), (2 * FEATURES, range(JOINTS))):
        changed = features.clone()
        changed[..., column] += 1
        different = (embed(changed) - embed(features)).abs().amax(dim=(0, 1, 3)) > 1e-6
        assert different.nonzero()[:, 0].tolist() == list(joints)


def test_bone_mask_shows_only_adjacent_joints():
    attention = JointAttention(16, 2, skeleton=True)
    x = torch.randn(1, 1, JOINTS, 16)
    for joint in range(JOINTS):
        changed = x.clone()
        changed[0, 0, joint] += 1
        different = ((attention(changed) - attention(x)).abs().amax(dim=-1) > 1e-6)[0, 0].nonzero()[:, 0].tolist()
        beside = {other for edge in H36M17.edges if joint in edge for other in edge}
        assert different == sorted(beside | {joint})


def test_bone_distance_equals_shortest_walks():
    step = np.eye(JOINTS, dtype=int)
    for one, other in H36M17.edges:
        step[one, other] = step[other, one] = 1
    for hops in range(MAX_JOINT_HOPS + 1):
        walks = np.linalg.matrix_power(step, hops) > 0
        assert [sorted(seen) for seen in joints_within_hops(hops)] == [np.flatnonzero(row).tolist() for row in walks]
        assert walks.all() == (hops == MAX_JOINT_HOPS)


def test_neighbourhoods_are_one_attention_over_time_and_joints():
    network = randomized(**BLOCKS, joint_hops=1)
    block = network.blocks[0]
    assert isinstance(block, JointBlock)
    assert block.spatial is None
    x, context = torch.randn(1, 12, JOINTS, 16), Context.from_times(torch.arange(12)[None] / 30, 8)
    knee, changed = H36M17.index("left_knee"), x.clone()
    changed[0, 4, knee] += torch.randn(16)
    different = ((block(changed, context) - block(x, context)).abs().amax(dim=-1) > 1e-6)[0]
    beside = [H36M17.index(joint) for joint in ("left_hip", "left_knee", "left_ankle")]
    # Blocks 0-2, 3-5, 6-8 see frame 4, two frames beyond their own; frames 9 on see from 7 on.
    assert different.any(dim=1).nonzero()[:, 0].tolist() == list(range(9))
    assert different.any(dim=0).nonzero()[:, 0].tolist() == sorted(beside)


def test_joint_attention_equals_its_definition():
    attention, x = JointAttention(16, 2, skeleton=False).double(), torch.randn(1, 1, JOINTS, 16, dtype=torch.float64)
    q, k, v = (project(x[0, 0]) for project in (attention.q_proj, attention.k_proj, attention.v_proj))
    heads = [slice(0, 8), slice(8, 16)]
    summed = [torch.softmax(q[:, h] @ k[:, h].T / 8**0.5, dim=-1) @ v[:, h] for h in heads]
    torch.testing.assert_close(attention(x)[0, 0], attention.out_proj(torch.cat(summed, dim=-1)))


def test_joint_order_matters_only_by_position_codes():
    network = randomized(tokens="joints")
    block = network.blocks[0]
    assert isinstance(block, JointBlock)
    x, context = torch.randn(2, 6, JOINTS, 16), tokens()[1]
    order = torch.randperm(JOINTS)
    torch.testing.assert_close(block(x[:, :, order], context), block(x, context)[:, :, order], rtol=1e-4, atol=1e-4)


def test_pooled_frame_uses_visible_joints():
    embed = randomized(tokens="hierarchical").embed
    assert isinstance(embed, HierarchicalEmbedding)
    features = torch.randn(2, 5, FEATURES)
    features[..., 3 * JOINTS : 4 * JOINTS] = 0
    assert embed(features).eq(0).all()
    features[0, 0, 3 * JOINTS + 4] = 1
    alone = embed.joints(features)
    for block in embed.blocks:
        alone = block(alone)
    torch.testing.assert_close(embed(features)[0, 0], alone[0, 0, 4])


def test_head_outputs_follow_the_decoded_order():
    head, x = JointHead(16), torch.randn(1, 3, JOINTS, 16)
    torch.nn.init.normal_(head.of_joint.weight)
    changed = x.clone()
    changed[:, :, 16] += 1  # the right wrist
    difference = (head(changed) - head(x)).abs().amax(dim=(0, 1)) > 1e-4
    # Its depth, trust, two corrections and sigma; the size of the body is a mean over all.
    assert set(difference.nonzero()[:, 0].tolist()) - {0} == {17, 34, 35 + 32, 35 + 33, 69 + 15}


@pytest.mark.parametrize("gate", [-50.0, 50.0])
def test_highway_gates_pass_or_transform(gate):
    road, (x, _) = Highway(16), tokens()
    torch.nn.init.zeros_(road.gate.weight)
    torch.nn.init.constant_(road.gate.bias, gate)
    y = torch.randn_like(x)
    torch.testing.assert_close(road(x, y), x if gate < 0 else y)


def adaptive(most: int = 4, **changes) -> AdaptiveBlock:
    torch.manual_seed(0)
    config = LifterConfig(**(SMALL | {"depth": most, "adaptive_depth": True} | changes))
    (block,) = networks.FORMS[config.form].blocks(config)
    assert isinstance(block, AdaptiveBlock)
    return block


def states(block: AdaptiveBlock, x: torch.Tensor, context: Context, count: int) -> list[torch.Tensor]:
    """Of frames that never halt."""
    after = []
    for n in range(count):
        x = block.block(x + block.codes[n], context)
        after.append(x)
    return after


def test_immediate_halting_takes_one_step():
    block, (x, context) = adaptive(), tokens()
    torch.nn.init.constant_(block.halt.bias, 50.0)
    answer, steps, left = block.run(x, context)
    torch.testing.assert_close(answer, states(block, x, context, 1)[0])
    assert steps.eq(1).all()
    assert left.eq(1).all()


def test_no_halting_takes_all_steps():
    block, (x, context) = adaptive(), tokens()
    torch.nn.init.constant_(block.halt.bias, -50.0)
    answer, steps, left = block.run(x, context)
    torch.testing.assert_close(answer, states(block, x, context, 4)[-1])
    assert steps.eq(4).all()
    assert left.eq(1).all()


def test_halting_weights_sum_to_one():
    """p 0.3, 0.4, then enough: weights .3, .4, .3 (not the interpolation of the reference code)."""
    block, (x, context) = adaptive(), tokens()
    chances = iter([0.3, 0.4, 0.9])
    block.halt.forward = lambda state: torch.full((*state.shape[:2], 1), torch.tensor(next(chances)).logit().item() - 1)
    answer, steps, left = block.run(x, context)
    first, second, third = states(block, x, context, 3)
    torch.testing.assert_close(answer, 0.3 * first + 0.4 * second + 0.3 * third)
    assert steps.eq(3).all()
    torch.testing.assert_close(left, torch.full_like(left, 0.3))


def test_halted_frame_keeps_its_state_and_stays_visible():
    block, (x, context) = adaptive(2), tokens()

    def halt(state: torch.Tensor) -> torch.Tensor:
        odds = torch.full((*state.shape[:2], 1), -50.0)
        odds[:, 0] = 50.0  # the first frame halts at once, the others never
        return odds

    block.halt.forward = halt
    answer, steps, _ = block.run(x, context)
    assert steps[0].tolist() == [1, 2, 2, 2, 2, 2]
    (first,) = states(block, x, context, 1)
    torch.testing.assert_close(answer[:, 0], first[:, 0])
    torch.testing.assert_close(answer[:, 1:], block.block(first + block.codes[1], context)[:, 1:])


def test_higher_step_cost_reduces_steps():
    taken = []
    for cost in (0.0, 0.3):
        block, (x, context) = adaptive(), tokens()
        optimizer = torch.optim.Adam(block.parameters(), lr=0.05)
        target = torch.randn_like(x)
        torch.nn.init.constant_(block.halt.bias, -2.0)
        for _ in range(30):
            loss = (block.train()(x, context) - target).square().mean()
            steps = ponder_cost(block)
            assert steps is not None
            optimizer.zero_grad()
            (loss + cost * steps).backward()
            optimizer.step()
        taken.append(block.eval().run(x, context)[1].mean().item())
    assert taken[1] < taken[0] - 0.5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tokens": "words"}, "'words' is not one of frames, joints, "),
        ({"residual": "long"}, "'long' is not one of plain, highway, none"),
        ({"skeleton_mask": True}, "needs tokens: joints or hierarchical"),
        ({"tokens": "hierarchical", "depth": 1}, "a depth of at least 2"),
        ({"tokens": "joints", "init": "t-fixup", "norm": "none"}, "which tokens changes; use init: xavier"),
        ({"residual": "highway", "init": "dt-fixup", "norm": "none"}, "which residual changes"),
        ({"joint_hops": 1}, "needs tokens: joints, got frames"),
        ({"joint_hops": 1, "tokens": "hierarchical", "attention": "blocks"}, "needs tokens: joints, got hierarchical"),
        ({"joint_hops": 1, "tokens": "joints"}, "needs attention: blocks, got softmax"),
        (BLOCKS | {"joint_hops": 9}, "must be 0 to 8"),
        (BLOCKS | {"joint_hops": -1}, "must be 0 to 8"),
        (BLOCKS | {"joint_hops": 1, "skeleton_mask": True}, "remove one of the two"),
        (BLOCKS | {"joint_hops": 1, "shared_maps": 2}, "no map of frames to share"),
        (BLOCKS | {"joint_hops": 1, "residual": "reversible"}, "reversible needs tokens: frames"),
        ({"model": "gru", "joint_hops": 1}, "joint_hops: only for transformers"),
        ({"adaptive_depth": True, "tokens": "joints"}, "needs tokens: frames or hierarchical"),
        ({"adaptive_depth": True, "shared_layers": True}, "remove shared_layers"),
        ({"model": "gru", "tokens": "joints"}, "tokens: only for transformers"),
    ],
)
def test_incompatible_options_are_rejected(changes, why):
    with pytest.raises(ValueError, match=why):
        LifterConfig(**({"dim": 16, "depth": 2} | ({} if "model" in changes else {"heads": 2}) | changes))


def test_default_block_is_unchanged():
    (block, _) = attention_blocks(LifterConfig(**SMALL))
    assert isinstance(block, Block)
    x, context = tokens()
    y = x + block.attention(block.norm1(x), context)
    torch.testing.assert_close(block(x, context), y + block.ffn(block.norm2(y)), rtol=0, atol=0)


def test_checkpoints_contain_the_token_form(tmp_path):
    network = randomized(tokens="joints", skeleton_mask=True)
    save_checkpoint(network, tmp_path / "a.safetensors")
    assert load_checkpoint(tmp_path / "a.safetensors").config == network.config


def test_lifting_only_options_are_rejected_in_pretraining():
    hard = LifterConfig(**SMALL, attention="composed", attention_options={"distribution": "hard"}, streaming=True)
    with pytest.raises(ValueError, match="needs a lifting loss"):
        TokenModel(hard, 10, 12, "learned")
    with pytest.raises(ValueError, match="tokens: joints is not supported for text"):
        TokenModel(LifterConfig(**SMALL, tokens="joints"), 10, 12, "learned")
    for model, why in (
        (hard, "hard attention"),
        (LifterConfig(**SMALL, tokens="joints"), "tokens: joints is not supported in pre-training"),
    ):
        with pytest.raises(ValueError, match=why):
            check_objective(model, "masked")
