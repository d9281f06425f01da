"""The sentence on a run's health: each thing that it judges, right, wrong, and too early to say."""

import pytest

from keras_bert.training.health import health


def metrics(
    *, steps=2000, loss=4.0, held_out=(7.0, 5.0, 4.0), wait=0.004, sentences=0.8, rows=400, **more
):
    """The metrics of a run that is healthy, unless something else is said."""
    every = steps // (len(held_out) - 1) if len(held_out) > 1 else steps
    history = [
        {"step": n * every, "train": {"loss": value}, "eval": {"loss": value}, "input_wait": wait}
        for n, value in enumerate(held_out)
    ]
    scores = {"masked_lm_loss": loss, "next_sentence_accuracy": sentences}
    record = {"steps": steps, "history": history, "unigram_entropy": 6.0, "eval": scores}
    return {**record, "train": scores, "eval_rows": rows, **more}


def test_a_healthy_run_is_told_with_every_metric():
    verdict = health(metrics())
    texts = verdict.pop("findings")
    assert f"The run looks healthy: {'; '.join(texts)}." == verdict["sentence"]
    assert verdict == {
        "is_healthy": True,
        "sentence": "The run looks healthy: masked-token loss 4.000, below the unigram "
        "baseline 6.000; past the plateau below the unigram baseline, which ends at 5.400; next "
        "sentences 80.0 % correct, chance 50.0 %; no divergence (held-out loss 4.000, lowest "
        "4.000); "
        "input wait 0.4 % of the time.",
    }


@pytest.mark.parametrize(
    "said, changed",
    [
        ("masked-token loss 6.100, not below the unigram baseline 6.000", {"loss": 6.1}),
        ("not past the plateau below the unigram baseline, which ends at 5.400", {"loss": 5.5}),
        (
            "next sentences 54.0 % correct, chance 50.0 %, not significant for 400 examples",
            {"sentences": 0.54},
        ),
        (
            "the held-out loss rose from 4.000 at step 1000 to 4.300",
            {"held_out": (7.0, 4.0, 4.3)},
        ),
        ("input wait 12.0 % of the time", {"wait": 0.12}),
    ],
)
def test_what_is_wrong_is_said_first_and_the_rest_behind_it(said, changed):
    verdict = health(metrics(**changed))
    assert verdict["is_healthy"] is False
    assert verdict["sentence"].startswith(f"The run does not look healthy: {said}") or (
        changed == {"loss": 6.1} and said in verdict["sentence"]
    )
    assert "no divergence" in verdict["sentence"].partition(" (")[2] or "held_out" in changed
    assert any(text.startswith(said) for text in verdict["findings"][:2])
    assert verdict["sentence"].endswith(").") and verdict["sentence"].count(". ") == 0


@pytest.mark.parametrize(
    "said, changed",
    [
        (
            "masked-token loss 6.500, not below the unigram baseline 6.000",
            {"steps": 199, "loss": 6.5},
        ),
        ("not past the plateau", {"steps": 999, "loss": 5.9}),
        ("next sentences 51.0 % correct", {"steps": 199, "sentences": 0.51}),
        ("too few losses to detect a divergence", {"held_out": (7.0, 4.0)}),
    ],
)
def test_what_may_still_come_is_no_fault(said, changed):
    verdict = health(metrics(**changed))
    assert verdict["is_healthy"] is None
    steps = changed.get("steps", 2000)
    told = f"{steps:,} steps"
    assert verdict["sentence"].startswith(
        f"Too early to tell whether the run is healthy ({told}): "
    )
    assert said in verdict["sentence"]


def test_chance_has_a_width_by_the_rows_that_were_guessed():
    assert health(metrics(sentences=0.54, rows=626))["is_healthy"] is True
    assert health(metrics(sentences=0.54, rows=624))["is_healthy"] is False


def test_chance_is_what_one_answer_to_all_pairs_gets_right():
    assert health(metrics(sentences=0.70), chance=0.68)["is_healthy"] is False
    verdict = health(metrics(sentences=0.75), chance=0.68)
    assert verdict["is_healthy"] is True
    assert "next sentences 75.0 % correct, chance 68.0 %;" in verdict["sentence"]
    verdict = health(metrics(eval={"masked_lm_loss": 4.0, "sentence_order_accuracy": 0.75}))
    assert "the order of sentences 75.0 % correct, chance 50.0 %;" in verdict["sentence"]


def test_the_losses_of_another_phase_are_no_course():
    """At step 1,000 the rows become others, whose loss is higher; it falls since."""
    losses = {0: 7.0, 500: 4.0, 1000: 3.0, 1500: 4.4, 1800: 4.2, 2000: 4.1}
    history = [{"step": n, "train": {}, "eval": {"loss": v}} for n, v in losses.items()]
    verdict = health(metrics(history=history), since=1000)
    assert verdict["is_healthy"] is True
    assert "no divergence (held-out loss 4.100, lowest 4.100)" in verdict["sentence"]
    assert health(metrics(history=history))["is_healthy"] is False


def test_without_held_out_rows_training_is_judged_and_what_is_not_measured_is_left_out():
    history = [
        {"step": n, "train": {"loss": v}, "input_wait": None} for n, v in enumerate((6, 4.0, 4.3))
    ]
    verdict = health(metrics(eval=None, eval_examples=None, history=history))
    assert verdict["is_healthy"] is True
    assert "no divergence (training loss 4.300, lowest 4.000)" in verdict["sentence"]
    assert "sentences" not in verdict["sentence"] and "input" not in verdict["sentence"]
    history[-1]["train"]["loss"] = 4.5
    assert health(metrics(eval=None, history=history))["is_healthy"] is False


@pytest.mark.parametrize(
    "area, steps, is_healthy", [(0.8, 200, True), (0.54, 200, False), (0.54, 199, None)]
)
def test_a_discriminator_tells_what_is_replaced(area, steps, is_healthy):
    scores = {"masked_lm_loss": 4.0, "replaced_tokens_auc": area, "replaced_tokens_fraction": 0.12}
    verdict = health(metrics(eval=scores, steps=steps))
    assert verdict["is_healthy"] is is_healthy
    text = f"replaced tokens (12.0 %) told with an AUC of {area:.3f}, chance 0.5"
    assert text in verdict["findings"]


def test_the_loss_of_a_discriminator_may_rise_and_that_of_its_generator_may_not():
    def course(*generator_losses):
        history = [
            {
                "step": step,
                "eval": {"loss": 20.0 + step, "masked_lm_loss": x, "replaced_tokens_loss": 0.3},
            }
            for step, x in enumerate(generator_losses)
        ]
        return health(metrics(history=history))["findings"]

    text = "no divergence (generator's held-out loss 4.000, lowest 4.000)"
    assert text in course(6.0, 5.0, 4.0)
    assert "the generator's held-out loss rose from 4.000 at step 1 to 5.000" in course(6, 4, 5)


def test_a_causal_lm_has_no_plateau_and_nothing_known_is_no_verdict():
    scores = {"causal_lm_loss": 5.9}
    verdict = health(metrics(eval=scores, train=scores))
    assert verdict["is_healthy"] is True and "plateau" not in verdict["sentence"]
    assert "next-token loss 5.900, below" in verdict["sentence"]
    nothing = health(metrics(unigram_entropy=None, eval=None, train={}, held_out=(), wait=None))
    assert nothing["is_healthy"] is None
