"""The small tasks: what is drawn is right by slow means, tricks are worth what was counted, models learn."""

import math
import re
from collections import Counter
from itertools import islice, product

import numpy as np
import pytest
import torch

from pose.lifting.config import LifterConfig
from pose.training.laboratory.studies.small_tasks import SmallTasksSettings, answer_loss, answers_right, run, tricks
from pose.training.laboratory.tasks import free_group, parentheses, task
from pose.training.laboratory.tasks.model import POSITIONS, EncoderDecoder, TokenModel, write
from pose.training.laboratory.tasks.task import PAD, Batch, distinct
from pose.training.laboratory.trial import Clock, Setup

TASKS = {
    "parentheses": parentheses.TASK,
    "max-min": task.task(2),
    "calculator": task.task(4),
    **{variant: free_group.task(6, variant) for variant in free_group.VARIANTS},
}
TINY = {"dim": 16, "depth": 1, "heads": 1, "expansion": 2}


def some(name, count=400, seed=3):
    return list(islice(distinct(TASKS[name], (seed,)), count))


def text_of(task, example):
    return task.written(example.question), task.written(example.answer)


def inside(question):
    """By a regular expression on what people read."""
    words = question.removesuffix(" =").split()
    marked = re.sub(r"\( ([\d ]+) \)", lambda found: "0 " + "1 " * len(found[1].split()) + "0", " ".join(words))
    return [token if "(" in question and i in range(words.index("(") , words.index(")") + 1) else "0"
            for i, token in enumerate(marked.split())]  # fmt: skip


def test_parentheses_mark_what_is_between_them():
    for example in some("parentheses"):
        question, answer = text_of(parentheses.TASK, example)
        assert answer.split() == inside(question)
    assert len({example.answer for example in some("parentheses", 2000)}) == 15


def arithmetic(question):
    """By Python itself."""
    code = re.sub(r"(?<=[\d)]) (?=[\dMS])", ", ", question.removesuffix(" ="))
    names = {"MAX": lambda *v: max(v), "MIN": lambda *v: min(v), "MEAN": lambda *v: math.floor(sum(v) / len(v)),
             "SUM": lambda *v: sum(v) % 10}  # fmt: skip
    return eval(code, {"__builtins__": {}}, names)


@pytest.mark.parametrize("name", ["max-min", "calculator"])
def test_calculations_equal_python(name):
    examples = some(name)
    for example in examples:
        question, answer = text_of(TASKS[name], example)
        assert str(arithmetic(question)) == answer
        assert ("nested" in example.tags) == (question.count("(") == 2)
        assert len(example.question) <= task.LONGEST + 1
    operators = {token for example in examples for token in text_of(TASKS[name], example)[0].split() if "(" in token}
    assert operators == ({"MAX(", "MIN("} if name == "max-min" else {"MAX(", "MIN(", "MEAN(", "SUM("})


@pytest.mark.parametrize("tokens", [[], [1], [11], [13], [11, 13], [11, 1, 13, 13], [14], [0]])
def test_invalid_expressions_have_no_value(tokens):
    if tokens == [1]:
        assert task.value(tokens) == 0
        return
    with pytest.raises(ValueError, match="not a valid expression"):
        task.value(tokens)


def test_trick_scores_equal_the_reference():
    """12 % the majority, 24 % given the operator, 86 % ignoring the nesting; 40.2 % copying a word, 1 / 15 guessing
    where the parentheses are."""
    calculated = some("max-min", 5000)
    worth = tricks(TASKS["max-min"], calculated)
    assert worth["nesting ignored"] == pytest.approx(0.86, abs=0.02)
    assert worth["the outer operator alone"] == pytest.approx(0.24, abs=0.02)
    majority = Counter(example.answer for example in calculated).most_common(1)[0][1] / len(calculated)
    assert majority == pytest.approx(0.12, abs=0.015)
    assert tricks(TASKS["answer"], some("answer", 5000))["copying the question"] == pytest.approx(0.402, abs=0.02)
    assert tricks(parentheses.TASK, some("parentheses", 5000))["always the same answer"] == pytest.approx(
        1 / 15, abs=0.01
    )


def group_element(word):
    """The word in a faithful representation of the free group: products of Sanov's matrices."""
    a, b = np.array([[1, 2], [0, 1]], object), np.array([[1, 0], [2, 1]], object)
    inverses = [np.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]], object) for m in (a, b)]
    # a^2, b^2 and a b a^-1 generate a free group of rank 3 inside the one of a and b.
    letters = [a @ a, b @ b, a @ b @ inverses[0], inverses[0] @ inverses[0], inverses[1] @ inverses[1],
               a @ inverses[1] @ inverses[0]]  # fmt: skip
    element = np.array([[1, 0], [0, 1]], object)
    for letter in word:
        element = element @ letters[letter - free_group.FIRST]
    return tuple(element.ravel())


def test_reduced_words_are_shortest_equal_elements():
    """Two words are the same element of the free group exactly if their matrices are equal."""
    shortest = {}
    for length in range(4):
        for word in product(range(free_group.FIRST, free_group.FIRST + 6), repeat=length):
            shortest.setdefault(group_element(word), length)
            assert group_element(free_group.reduced(word)) == group_element(word)
            assert len(free_group.reduced(word)) == shortest[group_element(word)]


def test_a_word_and_its_inverse_cancel():
    rng = np.random.default_rng(0)
    for _ in range(50):
        word = tuple(free_group.FIRST + rng.integers(6, size=5))
        turned = tuple(free_group.inverse(letter) for letter in reversed(word))
        assert free_group.reduced(word + turned) == ()


def test_solutions_equal_the_reference_text():
    vocabulary = free_group.VOCABULARY
    word = [vocabulary.index(letter) for letter in "bade"]
    written = {variant: " ".join(vocabulary[t] for t in free_group.solution(word, variant))
               for variant in free_group.VARIANTS}  # fmt: skip
    assert written["answer"] == "1 eos"
    assert written["steps"] == "b e = 1 eos"
    assert written["brackets"] == "b ( a d ) e = b e = ( b e ) = 1 eos"


@pytest.mark.parametrize("variant", ["steps", "brackets"])
def test_solution_lines_are_equal_elements(variant):
    task = TASKS[variant]
    for example in some(variant):
        lines = task.written((*example.question, *example.answer)).removesuffix(" eos").split(" = ")
        words = [[free_group.VOCABULARY.index(t) for t in line.split() if t not in "()1"] for line in lines]
        assert len({group_element(word) for word in words}) == 1
        assert words[-1] == list(free_group.reduced(words[0]))


@pytest.mark.parametrize("name", TASKS)
def test_questions_are_right_padded(name):
    examples = some(name, 2000)
    task = TASKS[name]
    longest = max(len(example.question) + len(example.answer) for example in examples)
    assert longest <= task.length <= longest + (1 if name in ("parentheses", "max-min", "calculator", "answer") else 30)
    batch = Batch.of(examples, task.length)
    for row, example in enumerate(examples[:50]):
        whole = example.question + example.answer
        assert tuple(batch.tokens[row, : len(whole)]) == whole
        assert (batch.tokens[row, len(whole) :] == PAD).all()
        assert tuple(batch.tokens[row, 1:][batch.answers[row]]) == example.answer
    assert [e.question for e in some(name, 5)] == [e.question for e in examples[:5]]


def test_evaluation_questions_are_not_in_training():
    shown = frozenset(example.question for example in some("max-min"))
    assert not shown & {example.question for example in islice(distinct(TASKS["max-min"], (3,), shown), 300)}


@pytest.mark.parametrize("positions", POSITIONS)
def test_answers_equal_token_by_token_generation(positions):
    torch.manual_seed(1)
    task = TASKS["answer"]
    network = TokenModel(LifterConfig(**TINY, streaming=True), len(task.vocabulary), task.length, positions).eval()
    torch.nn.init.normal_(network.head.weight, std=1.0)
    examples = some("answer", 40)
    answered = []
    for example in examples:
        written = write(network, example.question, len(example.answer))
        answered.append(tuple(written) == example.answer)
    # What it answers becomes the truth for half of them, so that some are right.
    examples = [
        e if i % 2 else type(e)(e.question, tuple(write(network, e.question, len(e.answer))))
        for i, e in enumerate(examples)
    ]
    right = answers_right(network, examples, task)
    assert right[::2].all()
    assert list(right[1::2]) == answered[1::2]


def test_loss_of_a_uniform_guesser_is_the_logarithm_of_the_vocabulary():
    task = TASKS["max-min"]
    network = TokenModel(LifterConfig(**TINY, streaming=True), len(task.vocabulary), task.length, "learned")
    torch.nn.init.zeros_(network.head.weight)
    torch.nn.init.zeros_(network.head.bias)
    loss = answer_loss(network, Batch.of(some("max-min"), task.length)).item()
    assert loss == pytest.approx(math.log(len(task.vocabulary)))


def learn_by_heart(network: torch.nn.Module, batch: Batch) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(100):
        loss = answer_loss(network, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize(
    "model",
    [{"dim": 32, "depth": 2, "heads": 2, "expansion": 2}, {"model": "gru", "dim": 32, "depth": 1}],
    ids=["softmax", "gru"],
)
def test_a_model_learns_32_answers_by_heart(model):
    task, examples = TASKS["answer"], some("answer", 32)
    torch.manual_seed(0)
    network = TokenModel(LifterConfig(**model, streaming=True), len(task.vocabulary), task.length, "learned")
    learn_by_heart(network, Batch.of(examples, task.length))
    assert answers_right(network, examples, task).all()
    assert not answers_right(network, some("answer", 32, seed=4), task).all()


def test_a_causal_stack_without_positions_still_knows_the_order():
    torch.manual_seed(0)
    network = TokenModel(LifterConfig(**{**TINY, "depth": 2}, streaming=True), 5, 4, "none")
    one, other = network(torch.tensor([[1, 2, 3, 4]])), network(torch.tensor([[2, 1, 3, 4]]))
    assert not torch.allclose(one[:, -1], other[:, -1], atol=1e-4)
    assert torch.allclose(network(torch.tensor([[1, 2, 3, 1]]))[:, :3], one[:, :3])  # and never looks ahead


@pytest.mark.parametrize("variant", free_group.VARIANTS)
def test_decoder_sees_only_written_tokens(variant):
    """What is answered depends on the whole question and on the answer so far, and on nothing that comes later."""
    torch.manual_seed(0)
    task, (example, *_) = TASKS[variant], some(variant, 1)
    network = EncoderDecoder(
        LifterConfig(**{**TINY, "depth": 2}), len(task.vocabulary), task.length, "learned", free_group.EQUALS
    ).eval()
    torch.nn.init.normal_(network.head.weight)
    tokens = torch.from_numpy(Batch.of([example], task.length).tokens)
    asked, said = len(example.question), network(tokens)
    for at in range(tokens.shape[1]):
        if at == asked - 1:
            continue
        other = tokens.clone()
        other[0, at] = free_group.FIRST if tokens[0, at] != free_group.FIRST else free_group.FIRST + 1
        changed = (network(other) - said).abs().amax(dim=-1)[0] > 1e-6
        assert not changed[asked - 1 : at].any() or at < asked - 1
        assert changed[max(at, asked - 1) :].any()
    written = write(network, example.question, len(example.answer))
    assert written == network(torch.tensor([[*example.question, *written]]))[0, asked - 1 : -1].argmax(-1).tolist()


@pytest.mark.slow
def test_an_encoder_and_decoder_learn_32_answers_by_heart():
    settings = SmallTasksSettings(
        task="free-group", form="encoder-decoder", model={"dim": 32, "depth": 1, "heads": 2, "expansion": 2}
    )
    task, examples = settings.build_task(), some("answer", 32)
    torch.manual_seed(0)
    network = settings.network()
    learn_by_heart(network, Batch.of(examples, task.length))
    assert answers_right(network, examples, task).all()


def test_t_fixup_scales_embeddings():
    """All of a token enters a stack of N blocks with a spread of about (9 N)^(-1/4)."""
    for form in ("decoder", "encoder-decoder"):
        model = {"dim": 64, "depth": 9, "heads": 2, "expansion": 2, "norm": "none", "init": "t-fixup"}
        network = SmallTasksSettings(task="max-min", form=form, model=model).network()
        for stack in [network] if form == "decoder" else [network.encoder, network.decoder]:
            assert stack.embed.weight.detach().std().item() == pytest.approx(1 / 3, rel=0.1)
        assert network.places.detach().std().item() == pytest.approx(0.1, rel=0.1)


def test_trial_reports_its_metrics(tmp_path):
    settings = SmallTasksSettings(task="max-min", model=TINY, examples=50, asked=60, steps=3, batch=8, optimizer="gd")
    outcome = run(settings, Setup(0, Clock(), lambda: pytest.fail("no motion"), tmp_path / "state.pt"))
    assert set(outcome.results) == {"right", "harder", "trick", "loss", "parameters"}
    assert (outcome.steps, outcome.examples) == (3, 24)
    assert 70 < outcome.results["trick"] < 100
    again = run(settings, Setup(0, Clock(), lambda: pytest.fail("no motion"), tmp_path / "state.pt"))
    assert again.results == outcome.results
    diverging = SmallTasksSettings(
        task="max-min", model=TINY, examples=50, asked=60, steps=30, optimizer="gd", rate=1e30
    )
    assert (
        run(diverging, Setup(0, Clock(), lambda: pytest.fail("no motion"), tmp_path / "s.pt")).results["right"]
        == math.inf
    )


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"task": "chess"}, "'chess' is not one of"),
        ({"task": "free-group", "variant": "magic"}, "'magic' is not one of"),
        ({"task": "max-min", "positions": "magic"}, "'magic' is not one of"),
        ({"task": "max-min", "form": "magic"}, "'magic' is not one of"),
        ({"task": "max-min", "form": "encoder-decoder", "model": {"model": "gru"}}, "use form: decoder"),
        ({"task": "max-min", "steps": 0}, "steps"),
        ({"task": "max-min", "model": {"attention": "local", "depth": "two"}}, "depth"),
        ({"task": "max-min", "optimizer": "radam", "warmup": "linear"}, "radam"),
    ],
)
def test_invalid_settings_give_the_reason(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        SmallTasksSettings(**settings)
