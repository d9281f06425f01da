"""Which steps of a run do what: entries, evaluations and checkpoints fall on one another."""

import itertools

import pytest

from keras_bert.train.plan import plan_epochs, plan_steps


@pytest.mark.parametrize(
    "steps, evaluate_every, checkpoint_every, an_execution",
    [
        (1200, 500, 500, 1),
        (13, 10, 5, 1),
        (300, 300, 300, 1),
        (7, 3, 2, 1),
        (640, 64, 32, 8),
        (10**6, 5000, 1000, 100),
    ],
)
def test_evaluations_checkpoints_and_executions_are_whole_entries(
    steps, evaluate_every, checkpoint_every, an_execution
):
    plan = plan_steps(
        steps,
        evaluate_every=evaluate_every,
        checkpoint_every=checkpoint_every,
        steps_per_execution=an_execution,
    )
    assert evaluate_every % plan.entry == checkpoint_every % plan.entry == 0
    assert plan.entry % an_execution == 0 and plan.entry <= max(50, an_execution)
    ends = [plan.step_of(n) for n in range(plan.entries)]
    assert ends[-1] == steps and ends == sorted(set(ends))
    due = set(range(evaluate_every, steps + 1, evaluate_every)) | {steps}
    assert {step for step in ends if plan.evaluates(step)} == due
    due = set(range(checkpoint_every, steps + 1, checkpoint_every)) | {steps}
    assert {step for step in ends if plan.checkpoints(step)} == due


def test_a_run_has_about_twenty_entries_unless_they_would_be_long():
    assert plan_steps(300, evaluate_every=300, checkpoint_every=300).entry == 15
    assert plan_steps(10_000, evaluate_every=500, checkpoint_every=500).entry == 50


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
        assert plan.steps == 3 * an_epoch and an_epoch % plan.entry == every % plan.entry == 0
        needed = -(-examples // batch_size)
        assert needed <= an_epoch < needed + plan.entry
        for epoch in (1, 2, 3):
            assert plan.evaluates(epoch * an_epoch) and plan.checkpoints(epoch * an_epoch)
