"""Whether a pre-training run looks healthy, in a sentence with the metrics that show it.

The criteria come from measured runs (docs/pretraining.md): a model learns word frequencies within
some hundred steps, and then stays on a plateau just below the unigram entropy until attention finds
the neighbours of a [MASK].
"""

import math
import statistics
from typing import NamedTuple

from keras_bert.base.formatting import counted, percent

# Steps after which a model must beat the unigram baseline, and chance on sentences …
_STEPS_FOR_WORDS = 200
# … and after which it must have left the plateau, which is within a tenth of the unigram entropy.
_STEPS_FOR_PLATEAU = 1000
_PLATEAU = 0.9
# Which loss shows a divergence, and how far it may be above the lowest one; the training loss is a
# mean over few batches, and noisier.
_LOSS_MARGINS = (("eval", "held-out loss", 0.05), ("train", "training loss", 0.1))
_MOST_WAITING = 0.05
_CHANCE = 0.5
_LOSSES = {
    "masked_lm_loss": "masked-token loss",
    "causal_lm_loss": "next-token loss",
    "forward_lm_loss": "next-token loss",
}
_SENTENCES = {
    "next_sentence_accuracy": "next sentences",
    "sentence_order_accuracy": "the order of sentences",
}


class Finding(NamedTuple):
    """One criterion; `is_good` is None if it is too early to tell."""

    is_good: bool | None
    text: str


def health(metrics, *, chance=_CHANCE, since=None):
    """A run's health for metrics.json, a dictionary.

    - `is_healthy`: False if any criterion fails, None if it is too early to tell for one, or
      nothing was measured, else True
    - `sentence`: the same in words, with each metric
    - `findings`: the criteria in words, those that fail first

    Args:
        metrics: `steps`, `history`, `unigram_entropy`, `eval`, `train` and `eval_rows` of a
            pre-training run.
        chance: the accuracy of always predicting the most frequent label of the held-out pairs:
            more than a half if most second segments are random.
        since: the last step of the phase before the last one, or None. Losses up to there are of
            other examples, and not compared.
    """
    history = [record for record in metrics["history"] if since is None or record["step"] > since]
    criteria = (_words(metrics), _plateau(metrics), _sentences(metrics, chance), _course(history))
    findings = [finding for finding in (*criteria, _input(metrics)) if finding is not None]
    good, bad, unclear = (
        "; ".join(finding.text for finding in findings if finding.is_good is verdict)
        for verdict in (True, False, None)
    )
    if bad:
        rest = "; ".join(filter(None, (good, unclear)))
        is_healthy = False
        sentence = f"The run does not look healthy: {bad}{f' ({rest})' if rest else ''}."
    elif unclear or not findings:
        steps = counted(metrics["steps"], "step")
        rest = "; ".join(filter(None, (unclear, good))) or "nothing was measured"
        is_healthy = None
        sentence = f"Too early to tell whether the run is healthy ({steps}): {rest}."
    else:
        is_healthy = True
        sentence = f"The run looks healthy: {good}."
    texts = [
        finding.text
        for is_good in (False, None, True)
        for finding in findings
        if finding.is_good is is_good
    ]
    return {"is_healthy": is_healthy, "sentence": sentence, "findings": texts}


def _words(metrics):
    """Whether the model beats the unigram baseline."""
    entropy, (name, loss) = metrics["unigram_entropy"], _loss(metrics)
    if entropy is None or loss is None:
        return None
    baseline = f"the unigram baseline {entropy:.3f}"
    if loss < entropy:
        return Finding(True, f"{_LOSSES[name]} {loss:.3f}, below {baseline}")
    return Finding(
        _bad_after(_STEPS_FOR_WORDS, metrics), f"{_LOSSES[name]} {loss:.3f}, not below {baseline}"
    )


def _plateau(metrics):
    """Whether attention has found a masked token's neighbours."""
    entropy, (name, loss) = metrics["unigram_entropy"], _loss(metrics)
    if entropy is None or name != "masked_lm_loss":
        return None
    end = f"the plateau below the unigram baseline, which ends at {_PLATEAU * entropy:.3f}"
    if loss < _PLATEAU * entropy:
        return Finding(True, f"past {end}")
    return Finding(_bad_after(_STEPS_FOR_PLATEAU, metrics), f"not past {end}")


def _sentences(metrics, chance):
    """Whether the accuracy on pairs is two standard deviations above chance."""
    scores, count = metrics["eval"] or {}, metrics.get("eval_rows")
    name = next((name for name in _SENTENCES if name in scores), None)
    if name is None or not count:
        return None
    text = f"{_SENTENCES[name]} {percent(scores[name])} correct, chance {percent(chance)}"
    if scores[name] > chance + 2 * math.sqrt(chance * (1 - chance) / count):
        return Finding(True, text)
    return Finding(
        _bad_after(_STEPS_FOR_WORDS, metrics),
        f"{text}, not significant for {counted(count, 'example')}",
    )


def _course(history):
    """Whether the loss has not risen again."""
    for part, name, margin in _LOSS_MARGINS:
        losses = [(e[part]["loss"], e["step"]) for e in history if e.get(part)]
        if len(losses) > 2:
            return _rise(losses, name, margin)
    return Finding(None, "too few losses to detect a divergence")


def _rise(losses, name, margin):
    """Whether the last of some (loss, step) is the lowest one, within a margin."""
    (lowest, at), (last, _) = min(losses), losses[-1]
    if last <= (1 + margin) * lowest:
        return Finding(True, f"no divergence ({name} {last:.3f}, lowest {lowest:.3f})")
    return Finding(False, f"the {name} rose from {lowest:.3f} at step {at} to {last:.3f}")


def _input(metrics):
    """Whether steps waited for their batches."""
    waits = [e["input_wait"] for e in metrics["history"] if e.get("input_wait") is not None]
    if not waits:
        return None
    wait = statistics.median(waits)
    return Finding(wait <= _MOST_WAITING, f"input wait {percent(wait)} of the time")


def _loss(metrics):
    """(name, nats) of the loss on tokens, held-out if there is one, or (None, None)."""
    scores = metrics["eval"] or metrics["train"]
    return next(((name, scores[name]) for name in _LOSSES if name in scores), (None, None))


def _bad_after(steps, metrics):
    """Whether not having learned something is bad (False) or too early to tell (None)."""
    return False if metrics["steps"] >= steps else None
