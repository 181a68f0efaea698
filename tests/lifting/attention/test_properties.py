"""What every mechanism of the table must hold, in every form it declares."""

import shutil
import sysconfig
from pathlib import Path

import pytest
import torch
from attention_forms import CAUSAL, FORMS, PADDED, STREAMING, TIMED, Batch, Form, for_each, make_batch
from torch import Tensor

from pose.lifting.attention import Attention, Context

every_form = for_each(FORMS)
causal_forms = for_each(CAUSAL)
streaming_forms = for_each(STREAMING)
timed_forms = for_each(TIMED)
GRAPHS = ("softmax,causal",)  # of the default suite: each graph takes a second or more


def a_few_by_default(forms: list[Form]) -> pytest.MarkDecorator:
    """For what takes a second a form: a few in the default suite, all others among the slow tests."""
    marked = [pytest.param(form, marks=[] if str(form) in GRAPHS else [pytest.mark.slow]) for form in forms]
    return pytest.mark.parametrize("form", marked, ids=map(str, forms))


CAN_COMPILE = shutil.which("g++") is not None and Path(sysconfig.get_path("include"), "Python.h").is_file()


def stream(layer: Attention, batch: Batch, *, masked: bool) -> Tensor:
    """What stepping through the batch frame by frame returns, (B, T, D)."""
    cache = layer.init_cache(len(batch.x), device="cpu", dtype=batch.x.dtype)
    answers = []
    for t in range(batch.x.shape[1]):
        frame = batch.frames(slice(t, t + 1))
        y, cache = layer.step(frame.x, frame.context(masked=masked), cache)
        answers.append(y)
    return torch.cat(answers, dim=1)


@every_form
def test_content_of_missing_frames_has_no_effect(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    want = layer(batch.x, batch.context())
    for garbage in (1e6, float("inf"), float("nan")):
        got = layer(batch.x.where(batch.valid[..., None], garbage), batch.context())
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        assert got[~batch.valid].eq(0).all()
        assert got[batch.valid].ne(0).all()


@for_each(PADDED)
def test_padding_counts_as_absent(form: Form) -> None:
    layer, batch = form.build(), make_batch(rows=1)
    short = batch.frames(slice(0, 9))  # the last three are padding
    got = layer(batch.x, batch.context())
    torch.testing.assert_close(got[:, :9], layer(short.x, short.context()), rtol=0, atol=1e-12)


@every_form
def test_all_frames_valid_is_the_same_as_no_mask(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    all_valid = Batch(batch.x, batch.times, torch.ones_like(batch.valid))
    want = layer(batch.x, batch.context(masked=False))
    torch.testing.assert_close(layer(batch.x, all_valid.context()), want, rtol=0, atol=1e-12)


@every_form
def test_a_sequence_of_missing_frames_returns_zeros_and_finite_gradients(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    batch.valid[0] = False
    x = batch.x.requires_grad_()
    y = layer(x, batch.context())
    y.square().sum().backward()
    assert y[0].eq(0).all()
    assert y.isfinite().all()
    assert x.grad is not None
    assert x.grad[~batch.valid].eq(0).all()
    for gradient in [x.grad, *(p.grad for p in layer.parameters())]:
        assert gradient is None or gradient.isfinite().all()
        assert gradient is not None or form.capabilities.random  # a choice has none


@every_form
def test_any_length_works_in_train_and_eval_mode(form: Form) -> None:
    layer = form.build()
    for length, masked in ((1, True), (2, False), (40, False), (40, True)):
        batch = make_batch(length=length)
        y = layer.train()(batch.x, batch.context(masked=masked))
        answer = layer.eval()(batch.x, batch.context(masked=masked))
        if not form.capabilities.random:
            torch.testing.assert_close(answer, y)
        assert answer.isfinite().all()
        assert y.shape == batch.x.shape
        assert y.isfinite().all()


@every_form
def test_batch_rows_are_independent(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    want = layer(batch.x, batch.context())
    for row in range(2):
        alone = Batch(batch.x[row : row + 1], batch.times[row : row + 1], batch.valid[row : row + 1])
        torch.testing.assert_close(layer(alone.x, alone.context()), want[row : row + 1], rtol=0, atol=1e-12)


@causal_forms
def test_a_causal_form_does_not_see_the_future(form: Form) -> None:
    layer, batch = form.build(), make_batch(length=20)
    for masked in (False, True):
        want = layer(batch.x, batch.context(masked=masked))
        for change in (batch.x[:, 8:] * 30, batch.x[:, 8:].flip(1)):
            got = layer(torch.cat([batch.x[:, :8], change], dim=1), batch.context(masked=masked))
            torch.testing.assert_close(got[:, :8], want[:, :8], rtol=0, atol=0)
            assert not torch.allclose(got[:, 8:], want[:, 8:])


@streaming_forms
def test_stepping_equals_the_causal_forward(form: Form) -> None:
    layer = form.build()
    for masked, length in ((False, 12), (True, 40)):
        batch = make_batch(length=length)
        want = layer(batch.x, batch.context(masked=masked))
        torch.testing.assert_close(stream(layer, batch, masked=masked), want, rtol=0, atol=1e-10)


@for_each([form for form in STREAMING if not form.options])
def test_stepping_equals_the_causal_forward_in_single_precision(form: Form) -> None:
    layer, batch = form.build(torch.float32), make_batch(length=40, dtype=torch.float32)
    torch.testing.assert_close(stream(layer, batch, masked=True), layer(batch.x, batch.context()), rtol=0, atol=1e-5)


@streaming_forms
def test_the_cache_does_not_grow_and_is_not_changed_in_place(form: Form) -> None:
    layer, batch = form.build(), make_batch(length=1)
    first = layer.init_cache(2, device="cpu", dtype=torch.float64)
    kept = [part.clone() for part in first]
    cache = first
    for _ in range(5):
        _, cache = layer.step(batch.x, batch.context(), cache)
        assert [part.shape for part in cache] == [part.shape for part in first]
        assert [part.dtype for part in cache] == [part.dtype for part in first]
    for before, after in zip(kept, first, strict=True):
        torch.testing.assert_close(after, before, rtol=0, atol=0)


@timed_forms
def test_the_origin_of_time_does_not_matter(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    want = layer(batch.x, batch.context())
    for shift in (-1e3, 86_400.0, 2.6e6):  # earlier, a day, a month
        shifted = Batch(batch.x, batch.times + shift, batch.valid)
        torch.testing.assert_close(layer(batch.x, shifted.context()), want, rtol=0, atol=1e-6)


@timed_forms
def test_time_step_changes_the_output(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    slower = Batch(batch.x, batch.times * 2, batch.valid)
    difference = (layer(batch.x, slower.context()) - layer(batch.x, batch.context())).abs().max()
    assert (difference > 1e-3) == (form.options.get("window") != 1)  # who sees only himself has no use for time


@every_form
def test_gradients_are_those_of_finite_differences(form: Form) -> None:
    layer, batch = form.build(), make_batch(rows=1, length=5)
    parameters = dict(layer.named_parameters())

    def run(x: Tensor, *values: Tensor) -> Tensor:
        state = dict(zip(parameters, values, strict=True))
        return torch.func.functional_call(layer, state, (x, batch.context()))

    inputs = (batch.x.requires_grad_(), *parameters.values())
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@every_form
def test_half_precision_stays_close(form: Form) -> None:
    batch = make_batch()
    want = form.build()(batch.x, batch.context())
    half = form.build(torch.bfloat16)(batch.x.bfloat16(), batch.context())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), want, rtol=0.1, atol=0.1)


@every_form
def test_autocast_stays_close(form: Form) -> None:
    batch = make_batch(dtype=torch.float32)
    layer = form.build(torch.float32)
    want = layer(batch.x, batch.context())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = layer(batch.x, batch.context())
    torch.testing.assert_close(got.float(), want, rtol=0.1, atol=0.1)


@every_form
def test_the_same_input_gives_the_same_output(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    for mode in (True, False):
        outputs = [run.train(mode)(batch.x, batch.context()) for run in (layer, form.build())]
        torch.testing.assert_close(outputs[1], outputs[0], rtol=0, atol=0)
    if not form.capabilities.random:
        torch.testing.assert_close(layer.train()(batch.x, batch.context()), outputs[0], rtol=0, atol=0)


@every_form
def test_saved_state_restores_the_layer(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    other = form.build()
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter)
    other.load_state_dict(state)
    torch.testing.assert_close(other(batch.x, batch.context()), layer(batch.x, batch.context()), rtol=0, atol=0)


def check_compiled(form: Form, backend: str) -> None:
    torch.compiler.reset()
    layer, batch = form.build(torch.float32), make_batch(dtype=torch.float32)
    compiled = torch.compile(layer, fullgraph=True, backend=backend)

    def gradients(run: Attention) -> list[Tensor]:
        x = batch.x.clone().requires_grad_()
        y = run(x, batch.context())
        wanted = [x, *layer.parameters()]
        return [y, *torch.autograd.grad(y.square().sum(), wanted, materialize_grads=True)]

    for got, want in zip(gradients(compiled), gradients(layer), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow  # seven seconds for the first
@every_form
def test_captured_in_one_graph_equals_eager(form: Form) -> None:
    check_compiled(form, "aot_eager")


@pytest.mark.slow
@pytest.mark.skipif(
    not CAN_COMPILE, reason="torch's compiler needs a C++ one (Debian: apt-get install g++ python3-dev)"
)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own, from its compiler
@pytest.mark.filterwarnings("ignore:.*code generation for complex:UserWarning")  # FNet's transform stays eager
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of modules that torch's compiler looks into, as jsonargparse
@pytest.mark.parametrize("form", [form for form in FORMS if not form.options], ids=str)
def test_compiled_equals_eager(form: Form) -> None:
    check_compiled(form, "inductor")


@a_few_by_default(STREAMING)
def test_streaming_step_exports_to_onnx(form: Form) -> None:
    layer, batch = form.build(torch.float32), make_batch(length=1, dtype=torch.float32)

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor, context: tuple[Tensor, ...], *cache: Tensor) -> tuple[Tensor, ...]:
            y, after = self.layer.step(x, Context(*context), type(first)(*cache))
            return y, *after

    first = layer.init_cache(2, device="cpu", dtype=torch.float32)
    context = batch.context()
    inputs = (batch.x, (context.cos, context.sin, batch.valid, batch.times), *first)
    program = torch.export.export(Step(), inputs)
    for got, want in zip(program.module()(*inputs), Step()(*inputs), strict=True):
        torch.testing.assert_close(got, want)


@every_form
def test_attention_map_weights_the_values(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    context = batch.context()
    x = batch.x.where(batch.valid[..., None], 0)
    if type(layer).weights is Attention.weights or form.options.get("global_projections") == "own":
        with pytest.raises(ValueError, match=r"has no (attention )?map"):
            layer.weights(x, context)
        return
    values = layer.split(layer.get_submodule("v_proj")(x))
    got = layer.get_submodule("out_proj")(layer.merge(layer.weights(x, context) @ values))
    torch.testing.assert_close(got[batch.valid], layer(batch.x, context)[batch.valid], rtol=0, atol=1e-12)
