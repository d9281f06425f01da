"""From a tagger's logits to predictions, and descriptions of wrongly tagged sentences."""

import numpy as np
from keras import ops
from scipy.special import log_softmax, softmax

from keras_bert.readers.schemes import name_chunks, spans_of
from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.tagging import FIRST, LAST, MEAN

# Words, with padding, that are decoded together by Viterbi's algorithm.
_WORDS_TOGETHER = 8192


def tagger_predictions(logits, sequences, *, labels, scheme, aggregation, crf=None):
    """The predictions for the examples of `TaggedSequences`, as `keras-bert predict` prints them.

    Args:
        logits: a list of float32 (S, C), one per sequence.
        sequences: the `TaggedSequences`.
        labels: the C tags.
        scheme: that of the tags, or None.
        aggregation: see `TaggerSettings`.
        crf: the `LinearChainCrf`, or None.

    Returns:
        One dictionary per example: `text`; one value per word in `words`, `tags`, `scores`,
        `starts`, `ends` (characters of `text`, the end excluded); `expected` if the tags are known;
        and with a scheme `entities`, dictionaries of `text`, `label`, `start`, `end`, and `score`,
        the lowest of its words.
    """
    sentences = sequences.sentences
    tokens, sizes = _tokens_of_words(logits, sequences, count=len(labels))
    counts = np.array([len(sentence.words) for sentence in sentences])
    if crf is not None:
        numbers, scores = _viterbi(tokens[_chosen(sizes, aggregation)], counts, crf)
    else:
        probabilities = word_distributions(tokens, sizes, aggregation=aggregation)
        numbers = probabilities.argmax(axis=-1)
        scores = np.take_along_axis(probabilities, numbers[:, None], axis=1)[:, 0]
    predictions, end = [], 0
    for example, sentence in zip(sequences.examples, sentences, strict=True):
        start, end = end, end + len(sentence.words)
        prediction = {
            "text": sentence.text,
            "words": sentence.words,
            "tags": [labels[number] for number in numbers[start:end]],
            "scores": scores[start:end].tolist(),
            "starts": sentence.starts,
            "ends": sentence.ends,
        }
        if example.tags is not None:
            prediction["expected"] = list(example.tags)
        if scheme is not None:
            prediction["entities"] = _entities(prediction)
        predictions.append(prediction)
    return predictions


def probabilities_of_words(logits, sequences, *, count, aggregation):
    """The label distribution of each word of the examples of `TaggedSequences`: float64 (W, C).

    Args:
        logits, sequences, aggregation: as for `tagger_predictions`.
        count: C.
    """
    tokens, sizes = _tokens_of_words(logits, sequences, count=count)
    return word_distributions(tokens, sizes, aggregation=aggregation)


def _tokens_of_words(logits, sequences, *, count):
    """-> (the logits of all tokens that are read, float64 (T, C); how many each word has, (W,))."""
    sentences = sequences.sentences
    sizes, spaces = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(s, name) for s in sentences)])
        for name in ("sizes", "spaces")
    )
    cores = zip(logits, sequences.cores, strict=True)
    tokens = [
        scores_of_tokens[start:end] for scores_of_tokens, (start, end) in cores
    ]  # all tokens of all sentences
    tokens = np.concatenate([np.zeros((0, count), np.float32), *tokens]).astype(np.float64)
    tokens = np.delete(tokens, (np.cumsum(sizes) - sizes)[spaces > 0], axis=0)
    return tokens, sizes - spaces


def word_distributions(logits, sizes, *, aggregation):
    """The label distribution of each word: float64 (T, C) of all tokens, (W,) -> float64 (W, C).

    It is that of its first or last token, or the mean or the normalized product of all of them.
    """
    if aggregation in (FIRST, LAST):
        return softmax(logits[_chosen(sizes, aggregation)], axis=-1)
    if not len(sizes):
        return logits
    starts = np.cumsum(sizes) - sizes
    if aggregation == MEAN:
        return np.add.reduceat(softmax(logits, axis=-1), starts, axis=0) / sizes[:, None]
    return softmax(np.add.reduceat(log_softmax(logits, axis=-1), starts, axis=0), axis=-1)


def _chosen(sizes, aggregation):
    """The first or the last token of each word: numbers of tokens (W,) -> (W,)."""
    ends = np.cumsum(sizes)
    return ends - sizes if aggregation == FIRST else ends - 1


def _viterbi(emissions, counts, crf):
    """Emissions (W, C) of all words, words per sentence (N,) -> labels, probabilities (W,)."""
    numbers, scores = np.zeros(len(emissions), np.int64), np.zeros(len(emissions))
    potentials = [ops.convert_to_numpy(part) for part in crf.potentials]
    starts = np.cumsum(counts) - counts
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    while len(order):
        width = counts[order[0]]
        sentences_per_batch = max(1, _WORDS_TOGETHER // width)
        chosen, order = order[:sentences_per_batch], order[sentences_per_batch:]
        is_word = np.arange(width) < counts[chosen][:, None]  # (B, W)
        positions = (starts[chosen][:, None] + np.arange(width))[is_word]
        padded = np.zeros((*is_word.shape, emissions.shape[1]))
        padded[is_word] = emissions[positions]
        labels, probabilities = most_probable(padded, is_word, potentials)
        numbers[positions], scores[positions] = labels[is_word], probabilities[is_word]
    return numbers, scores


def most_probable(emissions, is_word, potentials):
    """The most probable labels, by Viterbi's algorithm, and the probability of each at its word.

    The plain form is a scan over the words (`keras_bert.tasks.tagging.crf`):

        best[t, y] = max_y' (best[t-1, y'] + between[y', y]) + emission[t, y]

    and the same with log Σ exp in place of the maximum. Outside of a graph a step of a scan costs
    milliseconds on a CPU; a step of numpy, over many sentences together, costs microseconds.

    Shapes: emissions (B, W, C), is_word bool (B, W) -> int (B, W), float64 (B, W) for B sentences
    of up to W words and C labels; padding comes after the words, and values there are undefined.

    Args:
        potentials: the arrays start (C,), between (C, C) from row to column, and end (C,).
    """
    emissions = emissions.astype(np.float64)
    start, between, end = (np.asarray(part, np.float64) for part in potentials)
    words = emissions.shape[1]
    best = forward = start + emissions[:, 0]  # (B, C)
    back, reached = [], [forward]
    for word in range(1, words):
        emission, is_here = emissions[:, word], is_word[:, word, None]
        scores = best[:, :, None] + between  # (B, C, C)
        back.append(np.where(is_here, scores.argmax(axis=1), np.arange(len(start))))
        best = np.where(is_here, scores.max(axis=1) + emission, best)
        summed = _log_sum(forward[:, :, None] + between, axis=1) + emission
        forward = np.where(is_here, summed, forward)
        reached.append(forward)
    label = (best + end).argmax(axis=-1)  # (B,)
    after = np.broadcast_to(end, forward.shape)
    total = _log_sum(forward + end, axis=-1)
    labels, probabilities = np.zeros((2, *is_word.shape))
    for word in reversed(range(words)):
        row = np.arange(len(label))
        labels[:, word] = label
        probabilities[:, word] = np.exp((reached[word] + after)[row, label] - total)
        if word:
            label = back[word - 1][row, label]
            summed = _log_sum(between + (after + emissions[:, word])[:, None, :], axis=2)
            after = np.where(is_word[:, word, None], summed, after)
    return labels.astype(np.int64), probabilities


def _log_sum(x, *, axis):
    largest = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - largest).sum(axis=axis)) + largest.squeeze(axis)


def _entities(prediction):
    entities = []
    for span in spans_of(prediction["tags"]):
        start, end = prediction["starts"][span.start], prediction["ends"][span.end - 1]
        score = min(prediction["scores"][span.start : span.end])
        text = prediction["text"][start:end]
        entities.append(
            {"text": text, "label": span.kind, "start": start, "end": end, "score": score}
        )
    return entities


def tagging_errors(predictions, examples):
    """The sentences with a wrong tag, the worst first.

    Returns dictionaries of `line`, `text`, and for every word in `words` its tag in `expected` and
    `predicted` and the probability of the latter in `scores`; `score` is the sum of the
    probabilities of wrong tags.
    """
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        tags, scores = prediction["tags"], prediction["scores"]
        triples = zip(example.tags, tags, scores, strict=True)
        wrong = [score for true, tag, score in triples if true != tag]
        if wrong:
            errors.append(
                {
                    "line": example.line,
                    "text": prediction["text"],
                    "words": prediction["words"],
                    "expected": list(example.tags),
                    "predicted": tags,
                    "scores": scores,
                    "score": sum(wrong),
                }
            )
    return worst_first(errors)


def describe_tagging_error(error):
    """One of `tagging_errors` in words: chunks if the tags name them, otherwise wrong words."""
    words, expected, predicted = (error[name] for name in ("words", "expected", "predicted"))
    lines = [f"line {error['line']}: {' '.join(words)}"]
    if name_chunks([*expected, *predicted]):
        lines.append(f"  true: {_chunks(words, expected)}")
        lines.append(f"  predicted: {_chunks(words, predicted)}")
    else:
        lines += [
            f'  "{word}": true: {true}, predicted: {tag} ({score:.2f})'
            for word, true, tag, score in zip(
                words, expected, predicted, error["scores"], strict=True
            )
            if true != tag
        ]
    return "\n".join(lines)


def _chunks(words, tags):
    chunks = [
        f'{span.kind} "{" ".join(words[span.start : span.end])}"'.strip() for span in spans_of(tags)
    ]
    return ", ".join(chunks) or "nothing"
