"""Whether a pre-training run looks healthy, in a sentence with the figures that say so.

What is judged, and from when on, comes from runs that were measured (docs/pretraining.md): a model
learns how frequent words are within some hundred steps, and then stays on a plateau just under the
unigram entropy until attention has found the neighbours of a [MASK].
"""

import math
import statistics
from typing import NamedTuple

from keras_bert.base.formatting import counted, percent

# Steps before which a model need not know word frequencies, or sentences better than chance …
_STEPS_FOR_WORDS = 200
# … and before which it may be on the plateau, which lies within a tenth of the unigram entropy.
_STEPS_FOR_PLATEAU = 1000
_PLATEAU = 0.9
# Which loss tells a divergence, and how far it may stand over the lowest one; that of training is
# of few batches.
_COURSES = (("eval", "held-out loss", 0.05), ("train", "training loss", 0.1))
_MOST_WAITING = 0.05
_CHANCE = 0.5
_LOSSES = {"masked_lm_loss": "masked-token loss", "causal_lm_loss": "next-token loss"}
_SENTENCES = {
    "next_sentence_accuracy": "next sentences",
    "sentence_order_accuracy": "the order of sentences",
}


class Finding(NamedTuple):
    """`is_good` is None where it is too early to say."""

    is_good: bool | None
    said: str


def health(metrics, *, chance=_CHANCE, since=None):
    """What metrics.json says of a run's health, a dictionary.

    - `is_healthy`: False where one thing is wrong, None where it is too early to say of one, or
      nothing is known, else True
    - `sentence`: the same for a person, with each figure

    Args:
        metrics: `steps`, `history`, `unigram_entropy`, `eval`, `train` and `eval_rows` of a
            pre-training run.
        chance: the share of the held-out pairs that one answer to all of them gets right: where
            most second segments are random, it is more than a half.
        since: the step that the phase before the last one ended with, or None. Its losses are of
            other rows, and so no part of the last one's course.
    """
    history = [record for record in metrics["history"] if since is None or record["step"] > since]
    judged = (_words(metrics), _plateau(metrics), _sentences(metrics, chance), _course(history))
    found = [finding for finding in (*judged, _input(metrics)) if finding is not None]
    said = {
        verdict: "; ".join(finding.said for finding in found if finding.is_good is verdict)
        for verdict in (True, False, None)
    }
    if said[False]:
        rest = "; ".join(filter(None, (said[True], said[None])))
        is_healthy = False
        sentence = f"The run does not look healthy: {said[False]}{f' ({rest})' if rest else ''}."
    elif said[None] or not found:
        steps = counted(metrics["steps"], "step")
        rest = "; ".join(filter(None, (said[None], said[True]))) or "nothing was measured"
        is_healthy = None
        sentence = f"Too early to say whether the run is healthy ({steps}): {rest}."
    else:
        is_healthy = True
        sentence = f"The run looks healthy: {said[True]}."
    return {"is_healthy": is_healthy, "sentence": sentence}


def _words(metrics):
    """Whether more is known than word frequencies."""
    entropy, (name, loss) = metrics["unigram_entropy"], _loss(metrics)
    if entropy is None or loss is None:
        return None
    scores = f"the {entropy:.3f} of word frequencies"
    if loss < entropy:
        return Finding(True, f"{_LOSSES[name]} {loss:.3f}, below {scores}")
    return Finding(
        _bad_after(_STEPS_FOR_WORDS, metrics), f"{_LOSSES[name]} {loss:.3f}, not below {scores}"
    )


def _plateau(metrics):
    """Whether attention has found a masked token's neighbours."""
    entropy, (name, loss) = metrics["unigram_entropy"], _loss(metrics)
    if entropy is None or name != "masked_lm_loss":
        return None
    end = f"the plateau under word frequencies, which ends at {_PLATEAU * entropy:.3f}"
    if loss < _PLATEAU * entropy:
        return Finding(True, f"past {end}")
    return Finding(_bad_after(_STEPS_FOR_PLATEAU, metrics), f"not past {end}")


def _sentences(metrics, chance):
    """Whether pairs of sentences are told apart: chance, and two deviations of so many guesses."""
    scores, rows = metrics["eval"] or {}, metrics.get("eval_rows")
    name = next((name for name in _SENTENCES if name in scores), None)
    if name is None or not rows:
        return None
    said = f"{_SENTENCES[name]} {percent(scores[name])} right, by chance {percent(chance)}"
    if scores[name] > chance + 2 * math.sqrt(chance * (1 - chance) / rows):
        return Finding(True, said)
    return Finding(
        _bad_after(_STEPS_FOR_WORDS, metrics),
        f"{said}, no more than by chance in {counted(rows, 'row')}",
    )


def _course(history):
    """Whether the loss stands where it was lowest, and has not risen since."""
    for part, what, margin in _COURSES:
        losses = [(e[part]["loss"], e["step"]) for e in history if e.get(part)]
        if len(losses) > 2:
            return _rise(losses, what, margin)
    return Finding(None, "too few figures to tell a divergence")


def _rise(losses, what, margin):
    """Whether the last of some (loss, step) is one of the lowest, within a margin."""
    (lowest, at), (last, _) = min(losses), losses[-1]
    if last <= (1 + margin) * lowest:
        return Finding(True, f"no divergence ({what} {last:.3f}, at the lowest {lowest:.3f})")
    return Finding(False, f"the {what} rose from {lowest:.3f} at step {at} to {last:.3f}")


def _input(metrics):
    """Whether steps waited for their batches."""
    waits = [e["input_wait"] for e in metrics["history"] if e.get("input_wait") is not None]
    if not waits:
        return None
    wait = statistics.median(waits)
    return Finding(wait <= _MOST_WAITING, f"input wait {percent(wait)} of the time")


def _loss(metrics):
    """(name, nats) of the tokens' loss, held out where there are such rows; (None, None)."""
    scores = metrics["eval"] or metrics["train"]
    return next(((name, scores[name]) for name in _LOSSES if name in scores), (None, None))


def _bad_after(steps, metrics):
    """What not having learned something yet comes to."""
    return False if metrics["steps"] >= steps else None
