"""Cuts documents into sentences, and chooses the stretches of them that are segments of examples.

A sentence of prose ends at `.`, `!`, `?` or an ellipsis, with the quotes and brackets that close
after it, if white space and something other than a small letter follow. It does not end after a
title or another abbreviation ("Mr. Darcy", "e.g. this"), initials ("J. R. R. Tolkien", "U.S.
Army"), the number of a list item ("1. The first"), or a question or exclamation before its speaker
('"Where?" I asked.'). Chinese and Japanese stops need no white space. A newline is always an end.
Written for English prose; in other languages with these stops, only abbreviations are split
wrongly.

Segments are chosen by the offsets of sentences, never by the tokens: one is a range of the flat
tokens of all documents of a work item. Legend of shapes: T tokens, N sentences, D documents, R
examples.
"""

import re
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

_CLOSERS = "\"'”’)\\]»›*_"
_OPENERS = "\"'“”‘’(\\[«‹*_¿¡„"

# Matches begin with one character of a set, which is fast, and repetitions are possessive: a
# megabyte of dots takes no longer than other text. Groups, for Latin stops only: "more" is the rest
# of the stop, "close" the closing characters after it, "first" the word that follows.
_BOUNDARY = re.compile(
    rf"""
    [\n.!?…。！？]
    (?: (?<=\n) \s*+
    | (?<=[。！？]) [。！？]*+ [」』”’）]*+
    | (?<=[.!?…]) (?<![.!?…]{{2}}) (?P<more> (?:[ ]\.){{2,3}}+ | [.!?…]*+)
      (?P<close> [{_CLOSERS}]*+ )  [^\S\n]++
      (?= [{_OPENERS}—–-]*+ (?P<first> [^\Wa-z_] [\w’']*+ ) )
    )
    """,
    re.VERBOSE,
)

# Never the end of a sentence: a name or a number follows.
_TITLES = frozenset(
    """Mr Mrs Ms Messrs Mme Mlle Mdlle Dr Prof Rev Hon Gen Col Capt Cpt Cmdr Lt Sgt Maj Adm Gov Sen
    Rep Pres Supt Insp St Ste Mt Ft Fr Sr. Sra Srta Bros M. Mx Hr Sig Esq. Bp Abp Ald""".split()
)
_NEVER = _TITLES | frozenset(
    """cf viz vs ca approx fig figs eq eqs ch chap chaps sec sect vol vols no nos nr pp ed eds al
    ibid op cit incl esp resp i.e e.g Fig Figs Eq Eqs Ch Chap Chaps Sec Sect Vol Vols No Nos Nr Pp
    Ed Eds Cf Viz Vs Art Op Nos Bk""".split()
)
# The end only before a word that begins sentences more often than names (so not "A": an initial).
_SELDOM = frozenset(
    """Jr Sr Inc Ltd Co Corp Esq Bros Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues
    Wed Thu Thur Thurs Fri Sat Sun Ave Blvd Rd dept Dept Univ Assn v p""".split()
)
_STARTERS = frozenset(
    """The An This That These Those He She It They We You There Here His Her Its Their Our My Your
    In On At By For From With After Before When While As If But And Or So Then Yet Now What Who Why
    How Where Which No Not One Some All Every Many Most Such Since Because Although Though However
    Once Thus Even Only Perhaps Is Was Are Were Do Did Does Has Have Had Will Would Can Could Should
    To Of""".split()
)
_WHO_SAID = re.compile(
    r"(?:(?:Mr|Mrs|Dr)\.\s|Miss\s|Lady\s|Lord\s|Sir\s)?[A-Z]\w*(?:\s[A-Z]\w*)?\s"
    r"(?:said|asked|cried|replied|answered|exclaimed|shouted|whispered|added|returned|repeated"
    r"|called|murmured|muttered|inquired|enquired|demanded|says|thought|began|continued)\b"
)
_QUOTES = frozenset("\"'”’»›")


def split_sentences(text):
    """Returns the sentences of a text in their order, as a list of str without outer white space.

    Together they have every character of the text that is not white space.
    """
    sentences, start = [], 0
    for match in _BOUNDARY.finditer(text):
        if match["first"] is not None and not _is_end(text, start, match):
            continue
        sentences.append(text[start : match.end()])
        start = match.end()
    sentences.append(text[start:])
    return [sentence for raw in sentences if (sentence := raw.strip())]


def _is_end(text, start, match):
    """Whether a sentence that begins at `start` ends at a stop before a word in capitals."""
    stop, first = match.start(), match["first"]
    if first[0].islower():  # small letters beyond a to z
        return False
    last = text[match.end("more") - 1]
    if last in "!?":
        closed = not _QUOTES.isdisjoint(match["close"])
        return not (closed and _WHO_SAID.match(text, match.end()))
    if last == "…" or match["more"]:
        # After an ellipsis "I" is no sign of a beginning: "Well … I thought".
        return first != "I" and not first.startswith(("I'", "I’"))
    if match["close"]:
        return True
    word = text[max(start, text.rfind(" ", start, stop) + 1) : stop]
    return _ends_with(word.lstrip("\"'“‘([_*—–-"), first, is_first=stop - len(word) <= start)


def _ends_with(word, first, is_first):
    """Whether the full stop after `word` ends a sentence if the word `first` follows.

    `is_first`: `word` is the first of its sentence.
    """
    if not word:
        return True
    if word in _NEVER:
        return word in ("No", "no") and not first[0].isdigit()
    if word in _SELDOM:
        return first in _STARTERS
    if len(word) == 1:
        if word == "I":  # more often the pronoun or "World War I" than an initial
            return not is_first or first in _STARTERS
        if word.isupper():
            return first in _STARTERS
    if is_first and word.isdecimal():
        return False  # the number of a paragraph, or of an item in a list
    after_dash = re.split("--|—", word)[-1]
    if after_dash != word:
        return _ends_with(after_dash, first, is_first=False)
    if "." in word and max(map(len, word.split("."))) <= 2:
        return first in _STARTERS or word.lower() in ("a.m", "p.m")
    return True


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
    document_of_sentence = np.repeat(np.arange(len(document_lengths)), document_lengths)
    sizes = np.bincount(document_of_sentence, weights=parts, minlength=len(document_lengths))
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
