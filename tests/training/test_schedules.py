"""Learning rates against the published formulas."""

import math

import pytest
import torch
from torch import nn
from torch.optim import AdamW

from pose.training.schedules import (
    DECAYS,
    WARMUPS,
    ScheduleConfig,
    build_schedule,
    multiplier,
    noam,
    untuned_exponential_warmup,
    untuned_linear_warmup,
)

STEPS = 500


def rates(config: ScheduleConfig, steps: int = STEPS, beta2: float = 0.98) -> list[float]:
    return [multiplier(step, config, steps, beta2) for step in range(steps)]


@pytest.mark.parametrize(("dim", "warmup"), [(512, 4000), (192, 100)])
def test_noam_is_the_published_formula(dim: int, warmup: int) -> None:
    for t in (1, 2, warmup // 2, warmup, warmup + 1, 20 * warmup):
        published = dim**-0.5 * min(t**-0.5, t * warmup**-1.5)
        assert noam(t - 1, warmup) / math.sqrt(dim * warmup) == pytest.approx(published, rel=1e-12)
    assert noam(warmup - 1, warmup) == 1


@pytest.mark.parametrize(("beta2", "tau"), [(0.999, 2000), (0.98, 100), (0.99, 200)])
def test_untuned_linear_reaches_one_at_two_over_one_minus_beta2(beta2: float, tau: int) -> None:
    # int(2 / (1 - beta2)) gives 1999, 99 and 199: the truncation of a library
    assert untuned_linear_warmup(tau - 2, beta2) == pytest.approx(1 - 1 / tau, rel=1e-9)
    assert untuned_linear_warmup(tau - 1, beta2) == pytest.approx(1, rel=1e-9)
    assert untuned_linear_warmup(tau, beta2) == 1
    assert untuned_linear_warmup(0, beta2) == pytest.approx(1 / tau, rel=1e-9)


@pytest.mark.parametrize("beta2", [0.999, 0.98, 0.99])
def test_untuned_exponential_is_the_published_formula(beta2: float) -> None:
    for t in (1, 2, 50, 1000):
        assert untuned_exponential_warmup(t - 1, beta2) == pytest.approx(1 - math.exp(-(1 - beta2) * t), rel=1e-9)


@pytest.mark.parametrize("warmup", WARMUPS)
@pytest.mark.parametrize("decay", DECAYS)
def test_rates_lie_above_zero_and_at_most_one(warmup: str, decay: str) -> None:
    if decay == "noam" and warmup != "none":
        with pytest.raises(ValueError, match="noam has its own warm-up"):
            ScheduleConfig(warmup=warmup, decay=decay)
        return
    values = rates(ScheduleConfig(warmup=warmup, decay=decay, warmup_steps=50))
    assert all(0 < value <= 1 for value in values)
    peak = values.index(max(values))
    assert values[: peak + 1] == sorted(values[: peak + 1])
    assert values[peak:] == sorted(values[peak:], reverse=True)
    assert ScheduleConfig(warmup=warmup, decay=decay).warms_up == (values[0] < values[20])


@pytest.mark.parametrize("decay", ["linear", "exponential", "cosine"])
def test_decays_go_from_one_to_the_final_rate(decay: str) -> None:
    values = rates(ScheduleConfig(decay=decay, final=0.1))
    assert values[0] == 1
    assert values[-1] == pytest.approx(0.1)
    middle = {"linear": 0.55, "exponential": math.sqrt(0.1), "cosine": 0.55}[decay]
    assert multiplier(50, ScheduleConfig(decay=decay, final=0.1), 101, 0.98) == pytest.approx(middle)


def test_a_run_of_one_step_and_steps_beyond_the_run_are_defined() -> None:
    assert multiplier(0, ScheduleConfig(), 1, 0.98) == 1
    assert multiplier(2 * STEPS, ScheduleConfig(final=0.2), STEPS, 0.98) == pytest.approx(0.2)


def test_optimizer_follows_the_schedule_and_resumes() -> None:
    config = ScheduleConfig(warmup="untuned-linear", final=0)

    def build() -> tuple[AdamW, torch.optim.lr_scheduler.LambdaLR]:
        optimizer = AdamW(nn.Linear(2, 2).parameters(), lr=3e-3, betas=(0.9, 0.95))
        return optimizer, build_schedule(optimizer, config, 60)

    def run(optimizer: AdamW, schedule: torch.optim.lr_scheduler.LambdaLR, steps: int) -> list[float]:
        used = []
        for _ in range(steps):
            used.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return used

    want = [3e-3 * rate for rate in rates(config, 60, beta2=0.95)]
    first, second = build(), build()
    used = run(*first, 25)
    second[0].load_state_dict(first[0].state_dict())
    second[1].load_state_dict(first[1].state_dict())
    assert used + run(*second, 35) == pytest.approx(want)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"warmup": "lin"}, "schedule.warmup: 'lin' is not one of none, linear"),
        ({"decay": "step"}, "schedule.decay: 'step' is not one of none, linear"),
        ({"warmup_steps": 0}, "at least 1"),
        ({"period": 0}, "at least 1"),
        ({"final": -0.1}, "from 0"),
        ({"final": 1.1}, "from 0"),
        ({"decay": "exponential", "final": 0.0}, "above 0"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ScheduleConfig(**options)
