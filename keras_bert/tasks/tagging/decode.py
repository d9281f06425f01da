"""From a tagger's logits to answers, and wrongly tagged sentences as a person reads them."""

import numpy as np
from keras import ops
from scipy.special import softmax

from keras_bert.layers.kernels.viterbi import most_probable
from keras_bert.readers.schemes import spans_of
from keras_bert.tasks.tagging.settings import FIRST, LAST, MEAN

# Words, with padding, whose transitions are looked at together; so many arrays a label wide.
_WORDS_TOGETHER = 8192


def tagger_predictions(logits, rows, *, labels, scheme, aggregation, crf=None):
    """The answers to the examples of `TaggedRows`, as `keras-bert predict` prints them.

    Args:
        logits: a list of float32 (S, C), one a row.
        rows: the `TaggedRows`.
        labels: the C tags.
        scheme: that of the tags, or None.
        aggregation: see `TaggerSettings`.
        crf: the `LinearChainCrf`, or None.

    Returns:
        A dictionary an example: `text`; of each word `words`, `tags`, `scores`, `starts`, `ends`
        (characters of `text`, the end not included); `expected` where the tags are known; and where
        there is a scheme `entities`, a dictionary each of `text`, `label`, `start`, `end`, and
        `score`, the lowest of its words'.
    """
    sizes = np.concatenate([np.zeros(0, np.int64), *(s.sizes for s in rows.sentences)])
    cores = zip(logits, rows.cores, strict=True)
    tokens = [row[start:end] for row, (start, end) in cores]  # all pieces of all sentences
    tokens = np.concatenate([np.zeros((0, len(labels)), np.float32), *tokens]).astype(np.float64)
    counts = np.array([len(sentence.words) for sentence in rows.sentences])
    if crf is not None:
        chosen = tokens[_chosen(sizes, aggregation)]
        numbers, scores = _by_transitions(chosen, counts, crf)
    else:
        probabilities = word_distributions(tokens, sizes, aggregation=aggregation)
        numbers = probabilities.argmax(axis=-1)
        scores = np.take_along_axis(probabilities, numbers[:, None], axis=1)[:, 0]
    ends = np.cumsum(counts)
    predictions = []
    for example, sentence, start, end in zip(
        rows.examples, rows.sentences, ends - counts, ends, strict=True
    ):
        tags = [labels[number] for number in numbers[start:end]]
        prediction = {
            "text": sentence.text,
            "words": sentence.words,
            "tags": tags,
            "scores": [float(score) for score in scores[start:end]],
            "starts": sentence.starts,
            "ends": sentence.ends,
        }
        if example.tags is not None:
            prediction["expected"] = list(example.tags)
        if scheme is not None:
            prediction["entities"] = _entities(prediction)
        predictions.append(prediction)
    return predictions


def word_distributions(logits, sizes, *, aggregation):
    """The distribution over labels of each word: (T, C) of all pieces, (W,) -> float64 (W, C).

    That of its first or last piece; or the mean of its pieces'; or their product, normalised.
    """
    if aggregation in (FIRST, LAST):
        return softmax(logits[_chosen(sizes, aggregation)].astype(np.float64), axis=-1)
    if not len(sizes):
        return logits
    starts = np.cumsum(sizes) - sizes
    if aggregation == MEAN:
        return (
            np.add.reduceat(softmax(logits.astype(np.float64), axis=-1), starts, axis=0)
            / sizes[:, None]
        )
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return softmax(np.add.reduceat(logarithms, starts, axis=0), axis=-1)


def _chosen(sizes, aggregation):
    """The first or the last piece of each word: (W,), the pieces that it has -> (W,)."""
    ends = np.cumsum(sizes)
    return ends - sizes if aggregation == FIRST else ends - 1


def _by_transitions(emissions, counts, crf):
    """Emissions (W, C) of all words, (N,) words of each sentence -> labels, probabilities (W,)."""
    numbers, scores = np.zeros(len(emissions), np.int64), np.zeros(len(emissions))
    potentials = [ops.convert_to_numpy(part) for part in crf.potentials]
    starts = np.cumsum(counts) - counts
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    while len(order):
        width = counts[order[0]]
        together = max(1, _WORDS_TOGETHER // width)
        chosen, order = order[:together], order[together:]
        is_word = np.arange(width) < counts[chosen][:, None]  # (B, W)
        positions = (starts[chosen][:, None] + np.arange(width))[is_word]
        padded = np.zeros((*is_word.shape, emissions.shape[1]))
        padded[is_word] = emissions[positions]
        labels, probabilities = most_probable(padded, is_word, potentials)
        numbers[positions], scores[positions] = labels[is_word], probabilities[is_word]
    return numbers, scores


def _entities(prediction):
    found = []
    for span in spans_of(prediction["tags"]):
        start, end = prediction["starts"][span.start], prediction["ends"][span.end - 1]
        found.append(
            {
                "text": prediction["text"][start:end],
                "label": span.kind,
                "start": start,
                "end": end,
                "score": min(prediction["scores"][span.start : span.end]),
            }
        )
    return found


def tagging_errors(predictions, examples, *, scheme):
    """A list of (how bad, description) of the answers with a wrong tag.

    How bad is the sum of the probabilities with which wrong tags were given. Of chunks, those that
    are expected and those that were found are shown, of other tags each wrong word.
    """
    found = []
    for prediction, example in zip(predictions, examples, strict=True):
        pairs = list(zip(example.tags, prediction["tags"], strict=True))
        wrong = [position for position, (truth, said) in enumerate(pairs) if truth != said]
        if not wrong:
            continue
        where = f"{example.source.name}, line {example.line}: {' '.join(prediction['words'])}"
        if scheme is None:
            lines = [
                f'  "{prediction["words"][position]}" is {pairs[position][0]}, '
                f"found as {pairs[position][1]} ({prediction['scores'][position]:.2f})"
                for position in wrong
            ]
        else:
            lines = [
                f"  {name}: {_chunks(prediction['words'], tags)}"
                for name, tags in (("expected", example.tags), ("found", prediction["tags"]))
            ]
        badness = sum(prediction["scores"][position] for position in wrong)
        found.append((badness, "\n".join([where, *lines])))
    return found


def _chunks(words, tags):
    chunks = [
        f'{span.kind} "{" ".join(words[span.start : span.end])}"'.strip() for span in spans_of(tags)
    ]
    return ", ".join(chunks) or "nothing"
