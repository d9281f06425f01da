"""Chooses the stretches of text that are the segments of examples.

Works on the offsets of sentences, never on the tokens: a segment is a range of the flat tokens of
all documents of a work item. Legend of shapes: T tokens, N sentences, D documents, R examples.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np


class Sentences(NamedTuple):
    """The tokenized sentences of some documents, in order.

    `tokens` int32 (T,); `starts` (N + 1,) are the offsets of the sentences in them, the last is T;
    `documents` (D + 1,) is the number of each document's first sentence, the last is N. No sentence
    and no document is empty.
    """

    tokens: np.ndarray
    starts: np.ndarray
    documents: np.ndarray


class Pairs(NamedTuple):
    """Examples of two segments.

    `a` and `b` (R, 2) are their ranges of tokens. `labels` (R,) is 1 where the second segment is a
    random one (`pairs`) or the segments are swapped (`consecutive`). `dropped` counts the sentences
    without a partner, `same_document` the random segments from a distant part of the same document.
    """

    a: np.ndarray
    b: np.ndarray
    labels: np.ndarray
    dropped: int
    same_document: int = 0


def join(tokens, sentence_lengths, document_lengths, *, longest):
    """Makes `Sentences` of tokens (T,), tokens per sentence, and sentences per document.

    Empty sentences and documents are left out. A sentence of more than `longest` tokens is cut into
    several, so that no text is lost. Returns the `Sentences`, and how many were cut.
    """
    lengths = np.asarray(sentence_lengths, np.int64)
    parts = -(-lengths // longest)  # 0 for an empty one
    of_document = np.repeat(np.arange(len(document_lengths)), document_lengths)
    sizes = np.bincount(of_document, weights=parts, minlength=len(document_lengths))
    cut = np.repeat(lengths, parts)
    first = np.cumsum(parts) - parts
    number = np.arange(len(cut)) - np.repeat(first, parts)  # of the part in its sentence
    cut = np.minimum(longest, cut - number * longest)
    sizes = sizes[sizes > 0].astype(np.int64)
    sentences = Sentences(tokens=tokens, starts=_bounds(cut), documents=_bounds(sizes))
    return sentences, int((parts > 1).sum())


def pairs(sentences, *, max_tokens, short_seq_prob, rng):
    """Pairs of segments as google-research/bert's `create_pretraining_data.py` chooses them.

    Sentences of a document are taken until they fill `max_tokens` (or, with the probability
    `short_seq_prob`, a random smaller number). The first segment ends after a random one of them.
    Half of the time, and whenever there is only one, the second segment is random: sentences of
    another document, from a random one on, that fill the example; the unused ones begin the next
    example. The other half, it is the rest. Pairs may be longer than `max_tokens`: see `truncate`.

    With a single document, random segments come from a part of it that is at least
    `2 * max_tokens` tokens away; without such a part, the segments follow each other.
    """
    starts, documents = sentences.starts.tolist(), sentences.documents.tolist()
    draw = _draws(rng).__next__
    ranges, same_document, dropped = [], 0, 0
    for document in range(len(documents) - 1):
        first, stop = documents[document], documents[document + 1]
        while first < stop:
            target = _target(max_tokens, short_seq_prob, draw)
            end = bisect_left(starts, starts[first] + target, first + 1, stop)
            middle = first + 1
            if end > middle:
                middle += int(draw() * (end - middle))
            if end == first + 1 or draw() < 0.5:
                wanted = target - (starts[middle] - starts[first])
                other = _elsewhere(starts, documents, document, first, end, max_tokens, draw)
                if other is not None:
                    begin, last, same = other
                    same_document += same
                    until = bisect_left(starts, starts[begin] + max(1, wanted), begin + 1, last)
                    ranges.append((starts[first], starts[middle], starts[begin], starts[until], 1))
                    first = middle
                    continue
            if end > middle:
                ranges.append((starts[first], starts[middle], starts[middle], starts[end], 0))
            elif starts[end] - starts[first] > 1:  # one sentence and no other text: its halves
                half = (starts[first] + starts[end]) // 2
                ranges.append((starts[first], half, half, starts[end], 0))
            else:
                dropped += 1
            first = end
    return _pairs(ranges, dropped=dropped, same_document=same_document)


def consecutive(sentences, *, max_tokens, short_seq_prob, rng):
    """Pairs of consecutive segments, half of them swapped: ALBERT's (Lan et al. 2020, 3.1).

    Sentences of a document are taken as `pairs` takes them, and split after a random one of them
    (a single sentence, in its middle). The two may be longer than `max_tokens`: see `truncate`.

    Half of the documents are read from their end: the sentence that fills an example is longer than
    others on average, so that the length of a segment would reveal its position.
    """
    starts, documents = sentences.starts.tolist(), sentences.documents.tolist()
    draw = _draws(rng).__next__
    ranges, dropped = [], 0
    for first, stop in zip(documents, documents[1:], strict=False):
        bounds = starts[first : stop + 1]
        backwards = draw() < 0.5
        if backwards:
            bounds = [-bound for bound in reversed(bounds)]
        for stretch in _split(bounds, max_tokens, short_seq_prob, draw):
            begin, middle, end = sorted(map(abs, stretch)) if backwards else stretch
            if middle in (begin, end):
                dropped += 1
            elif draw() < 0.5:
                ranges.append((middle, end, begin, middle, 1))
            else:
                ranges.append((begin, middle, middle, end, 0))
    return _pairs(ranges, dropped=dropped)


def _pairs(ranges, **counts):
    table = np.array(ranges, np.int64).reshape(-1, 5)
    return Pairs(table[:, 0:2], table[:, 2:4], table[:, 4], **counts)


def _split(bounds, max_tokens, short_seq_prob, draw):
    """Yields stretches of sentences that fill an example, (begin, where it is split, end).

    `bounds` are the starts of the sentences of a document, and the end of the last. A single
    sentence of one token is not split: two of the three are the same.
    """
    first, stop = 0, len(bounds) - 1
    while first < stop:
        target = _target(max_tokens, short_seq_prob, draw)
        end = bisect_left(bounds, bounds[first] + target, first + 1, stop)
        middle = (bounds[first] + bounds[end]) // 2
        if end > first + 1:
            middle = bounds[first + 1 + int(draw() * (end - first - 1))]
        yield bounds[first], middle, bounds[end]
        first = end


def singles(sentences, *, max_tokens, short_seq_prob, rng):
    """Single segments: the whole sentences of a document that fit into `max_tokens`, (R, 2).

    RoBERTa's DOC-SENTENCES (Liu et al. 2019, 4.2), and SpanBERT's single segments: no example
    crosses the end of a document. With the probability `short_seq_prob` a random smaller number is
    filled.
    """
    starts, documents = sentences.starts.tolist(), sentences.documents.tolist()
    draw = _draws(rng).__next__
    ranges = []
    for first, stop in zip(documents, documents[1:], strict=False):
        while first < stop:
            target = _target(max_tokens, short_seq_prob, draw) if short_seq_prob else max_tokens
            end = bisect_left(starts, starts[first] + target + 1, first + 1, stop + 1) - 1
            end = max(end, first + 1)
            ranges.append((starts[first], starts[end]))
            first = end
    return np.array(ranges, np.int64).reshape(-1, 2)


def _target(max_tokens, short_seq_prob, draw):
    if draw() < short_seq_prob:
        return 2 + int(draw() * (max_tokens - 1))
    return max_tokens


def truncate(a, b, *, max_tokens, rng):
    """Cuts pairs of ranges (R, 2) to `max_tokens` together.

    As `truncate_seq_pair` of google-research/bert: tokens are removed one by one from the longer
    segment (the second if they are equal), each from the front or the back at random. Returns the
    ranges, and how many pairs were cut.
    """
    size_a, size_b = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0]
    excess = np.maximum(0, size_a + size_b - max_tokens)
    lead = size_a - size_b
    alone = np.minimum(excess, np.abs(lead))  # what the longer one loses until they are equal
    both = excess - alone
    cut_a = np.where(lead > 0, alone, 0) + both // 2
    cut_b = np.where(lead > 0, 0, alone) + (both + 1) // 2
    return _shorten(a, cut_a, rng), _shorten(b, cut_b, rng), int((excess > 0).sum())


def _shorten(ranges, cut, rng):
    front = rng.binomial(cut, 0.5)
    return np.stack([ranges[:, 0] + front, ranges[:, 1] - (cut - front)], axis=1)


def _elsewhere(starts, documents, document, first, end, max_tokens, draw):
    """A random sentence that does not continue the text from `first` to `end`, or None.

    Returns it, the end of its document and whether that is the same document.
    """
    count = len(documents) - 1
    if count > 1:
        other = document + 1 + int(draw() * (count - 1))
        other -= count if other >= count else 0
        begin, last = documents[other], documents[other + 1]
        return begin + int(draw() * (last - begin)), last, False
    # The parts of the only document that are far enough before and after.
    before = bisect_left(starts, starts[first] - 2 * max_tokens, 0, first)
    after = bisect_left(starts, starts[end] + 2 * max_tokens, end, documents[1])
    choice = int(draw() * (before + documents[1] - after))
    if before + documents[1] - after == 0:
        return None
    if choice < before:
        return choice, before, True
    return after + choice - before, documents[1], True


def _draws(rng):
    """Uniform random numbers, drawn by the thousand."""
    while True:
        yield from rng.random(1024).tolist()


def _bounds(sizes):
    return np.concatenate([[0], np.cumsum(sizes)])
