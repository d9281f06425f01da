"""Long texts as overlapping passages, each of which a model reads whole."""

import numpy as np

from keras_bert.tasks.text_embedding.features import prompt_tokens
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder

# The fraction of a passage that the next one has as well.
OVERLAP = 1 / 4
_CHARACTERS_TOGETHER = 1 << 20


def passages_of_words(tokens: np.ndarray, *, room: int) -> list[tuple[int, int]]:
    """The (first word, word after the last) of each passage of a text.

    A passage ends before the word with which it would have more than `room` tokens. The next one
    begins with the words of its last quarter. A word of more tokens is a passage by itself.

    Args:
        tokens: int (W,), the tokens of each word.
        room: the tokens of a passage.
    """
    ends = np.cumsum(tokens)
    if not len(ends):
        return []
    passages, first = [], 0
    while True:
        before = ends[first] - tokens[first]
        end = max(first + 1, int(np.searchsorted(ends, before + room, side="right")))
        passages.append((first, end))
        if end >= len(ends):
            return passages
        # The first word that begins in the overlap; the passage after has a new word, too.
        overlap = int(np.searchsorted(ends - tokens, ends[end - 1] - room * OVERLAP, side="left"))
        overlap = min(max(overlap, first + 1), end)
        while overlap < end and ends[end] - (ends[overlap] - tokens[overlap]) > room:
            overlap += 1
        first = overlap


def passages(task: TextEmbedder, texts: list[str]) -> list[list[tuple[int, int]]]:
    """The passages of each text, (characters from, to): at least one, the whole of a short text.

    Together the passages of a text have every word of it.
    """
    settings, tokenizer = task.settings, task.tokenizer
    prompt = int(prompt_tokens(task, [settings.prompt_of("document")])[0])
    special = tokenizer.template.before(0, texts=1)
    room = tokenizer.template.room(settings.max_length) - max(0, prompt - special)
    result = [[(0, len(text))] for text in texts]
    # A token has a byte at least.
    long = [n for n, text in enumerate(texts) if len(text.encode("utf-8", "replace")) > room]
    while long:
        size, some = 0, []
        while long and (not some or size + len(texts[long[0]]) <= _CHARACTERS_TOGETHER):
            size += len(texts[long[0]])
            some.append(long.pop(0))
        every = _passages_of_long(task, [texts[number] for number in some], room)
        for number, bounds in zip(some, every, strict=True):
            result[number] = bounds or result[number]
    return result


def _passages_of_long(task, texts, room):
    """Yields the passages of each text, [] of one without tokens."""
    lower = task.settings.lowercase
    as_read = [text.lower() if lower and len(text.lower()) == len(text) else text for text in texts]
    tokens = task.tokenizer.tokenize_with_offsets(as_read)
    splits = tokens.ids.row_splits.numpy()
    starts, ends = tokens.starts.values.numpy(), tokens.ends.values.numpy()
    is_first = tokens.word_starts.values.numpy()
    for begin, end in zip(splits[:-1], splits[1:], strict=True):
        words = begin + np.flatnonzero(is_first[begin:end])
        if not len(words) and begin < end:
            words = np.array([begin])
        counts = np.diff(np.append(words, end))
        yield [
            (int(starts[words[first]]), int(ends[words[first] + counts[first:last].sum() - 1]))
            for first, last in passages_of_words(counts, room=room)
        ]
