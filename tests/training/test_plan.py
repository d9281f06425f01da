"""Which steps of a run do what: entries, evaluations and checkpoints fall on one another."""

import itertools

import pytest

from keras_bert.training.plan import plan_epochs, plan_steps


@pytest.mark.parametrize(
    "steps, evaluate_every, checkpoint_every, an_execution",
    [
        (1200, 500, 500, 1),
        (13, 10, 5, 1),
        (300, 300, 300, 1),
        (7, 3, 2, 1),
        (640, 64, 32, 8),
        (10**6, 5000, 1000, 100),
        (10_000, 1000, 997, 1),
        (10_000, 800, 776, 8),
        ([60, 75], 10, 7, 1),
    ],
)
def test_evaluations_checkpoints_and_executions_end_records(
    steps, evaluate_every, checkpoint_every, an_execution
):
    plan = plan_steps(
        steps,
        evaluate_every=evaluate_every,
        checkpoint_every=checkpoint_every,
        steps_per_execution=an_execution,
    )
    assert plan.record % an_execution == 0 and plan.record <= max(50, an_execution)
    ends = [plan.step_of(n) for n in range(plan.records)]
    lengths = [end - begin for begin, end in itertools.pairwise([0, *ends])]
    assert max(lengths) <= plan.record and all(length % an_execution == 0 for length in lengths)
    evaluations, checkpoints, begin = set(), set(), 0
    for phase in steps if isinstance(steps, list) else [steps]:
        end = begin + phase
        evaluations |= {*range(begin + evaluate_every, end, evaluate_every), end}
        checkpoints |= {*range(begin + checkpoint_every, end, checkpoint_every), end}
        begin = end
    assert {step for step in ends if plan.evaluates(step)} == evaluations
    assert {step for step in ends if plan.checkpoints(step)} == checkpoints
    assert ends[-1] == begin and ends == sorted({*ends, *evaluations, *checkpoints})


@pytest.mark.parametrize("steps", [1, 5, 19, 20, 21, 100, [7, 40, 33]])
@pytest.mark.parametrize("every", [(3, 2), (4, 6), (10, 10), (50, 7)])
def test_log_steps_are_found_by_their_steps_and_back(steps, every):
    evaluate_every, checkpoint_every = every
    plan = plan_steps(steps, evaluate_every=evaluate_every, checkpoint_every=checkpoint_every)
    ends = [plan.step_of(n) for n in range(plan.records)]
    assert ends == sorted(set(ends)) and ends[-1] == plan.steps
    for step in range(plan.steps + 1):
        assert plan.record_at(step) == sum(end <= step for end in ends)
    assert [plan.first_step_of(n) for n in range(plan.records)] == [0, *ends[:-1]]


def test_millions_of_epochs_are_not_counted_out(monkeypatch):
    """They took a minute and gigabytes before the first step."""
    plan = plan_epochs(10**9, examples=40, batch_size=32, checkpoint_every=500)
    assert plan.steps == 2 * 10**9 and plan.records == plan.record_at(plan.steps)
    assert plan.step_of(plan.records - 1) == plan.steps
    assert plan.evaluates(2) and not plan.evaluates(3)


def test_an_record_is_not_a_step_where_evaluations_and_checkpoints_have_no_common_divisor():
    plan = plan_steps(100_000, evaluate_every=1000, checkpoint_every=997)
    assert plan.record == 50 and plan.records <= 100_000 / 50 + 2 * (100 + 101)
    plan = plan_epochs(3, examples=32_000, batch_size=32, checkpoint_every=997)
    assert plan.record == 50 and plan.evaluate_every == 1000 and plan.records < 3 * 25


def test_a_run_has_about_twenty_records_unless_they_would_be_long():
    assert plan_steps(300, evaluate_every=300, checkpoint_every=300).record == 15
    assert plan_steps(10_000, evaluate_every=500, checkpoint_every=500).record == 50


@pytest.mark.parametrize("examples", [1, 7, 96, 720, 6920])
def test_every_epoch_is_evaluated_and_kept(examples):
    for batch_size, every, an_execution in itertools.product((8, 32), (5, 500), (1, 5)):
        plan = plan_epochs(
            3,
            examples=examples,
            batch_size=batch_size,
            checkpoint_every=every,
            steps_per_execution=an_execution,
        )
        an_epoch = plan.evaluate_every
        assert plan.steps == 3 * an_epoch and an_epoch % an_execution == 0
        needed = -(-examples // batch_size)
        assert needed <= an_epoch < needed + plan.record
        for epoch in (1, 2, 3):
            assert plan.evaluates(epoch * an_epoch) and plan.checkpoints(epoch * an_epoch)
