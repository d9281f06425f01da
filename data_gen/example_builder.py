"""From documents to serialized rows: split, tokenize, choose segments, frame, mask, encode."""

import hashlib

import numpy as np

from data_gen import instances, segments
from data_gen.documents import parts
from data_gen.sentences import split_sentences
from data_gen.statistics import Statistics
from keras_bert.records.padding import frame_sequences, with_special_tokens
from keras_bert.text.tokenizer import Tokenizer

# A text without an end of a sentence (a line of 50 MB) is tokenized in parts of so many characters.
_LONGEST = 1 << 16
# Sentences that are tokenized at once: one by one costs thirty times as much.
_TOKENIZED_AT_ONCE = 2048
# Rows that are masked and encoded at once: what is made of them stays in the processor's cache.
EXAMPLES_AT_ONCE = 1024


class ExampleBuilder:
    """Makes rows of groups of documents, as the settings of a job say.

    Loads the tokenizer, so that one is made for a worker and not for each group. `masker` is the
    `Masker` of the rows, or None.
    """

    def __init__(self, settings, masker=None):
        self._settings = settings
        self.masker = masker
        self._tokenizer = Tokenizer(
            settings.vocabulary, lowercase=settings.lowercase, template=settings.template
        )
        self._spec = settings.spec

    def sentences(self, documents):
        """The sentences of documents, tokenized: `segments.Sentences`, and how many were cut."""
        texts, counts = [], []
        for document in documents:
            if document.form == "lines":
                sentences = document.text.split("\n")
            else:
                sentences = split_sentences(document.text)
            if max(map(len, sentences), default=0) > _LONGEST:
                sentences = [part for sentence in sentences for part in parts(sentence, _LONGEST)]
            texts += sentences
            counts.append(len(sentences))
        tokens, lengths = self.tokenize(texts)
        return segments.join(tokens, lengths, counts, longest=self._settings.max_tokens)

    def tokenize(self, texts):
        """Ids of texts one after another, int32 (T,), and the number of each text's, (N,)."""
        values, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
            ids = self._tokenizer.tokenize(texts[start : start + _TOKENIZED_AT_ONCE])
            values.append(ids.values.numpy())
            lengths.append(ids.row_lengths().numpy())
        return np.concatenate(values), np.concatenate(lengths)

    def choose(self, sentences, *, rng, copies):
        """Segments of all copies of the text, in random order.

        Returns ([ranges of segments (R, 2), …], labels of what the second segment is to the first
        (R,) or None, copies (R,), counters).
        """
        settings, counters = self._settings, {}
        chosen, labels, numbers = [], [], []
        for copy in range(copies):
            options = dict(
                max_tokens=settings.max_tokens, short_seq_prob=settings.short_seq_prob, rng=rng
            )
            if settings.objective == "mlm-nsp":
                pairs = segments.pairs(sentences, **options)
                chosen.append(self._fitted(pairs, counters, rng=rng))
                labels.append(pairs.random)
                _add(counters, random_pairs=int(pairs.random.sum()),
                     random_from_same_document=pairs.same_document,
                     sentences_without_partner=pairs.dropped)  # fmt: skip
            elif settings.objective == "mlm-sop":
                pairs = segments.consecutive(sentences, **options)
                chosen.append(self._fitted(pairs, counters, rng=rng))
                labels.append(pairs.swapped)
                _add(counters, swapped_pairs=int(pairs.swapped.sum()),
                     sentences_without_partner=pairs.dropped)  # fmt: skip
            else:
                chosen.append(segments.singles(sentences, **options))
            numbers.append(np.full(len(chosen[-1]), copy))
        order = rng.permutation(sum(map(len, chosen)))
        ranges = np.concatenate(chosen)[order]
        return (
            [ranges[:, first : first + 2] for first in range(0, ranges.shape[1], 2)],
            np.concatenate(labels)[order] if labels else None,
            np.concatenate(numbers)[order],
            counters,
        )

    def _fitted(self, pairs, counters, *, rng):
        """The ranges of pairs, (R, 4), cut to the length of a row."""
        a, b, cut = segments.truncate(
            pairs.a, pairs.b, max_tokens=self._settings.max_tokens, rng=rng
        )
        _add(counters, truncated_pairs=cut)
        return np.concatenate([a, b], axis=1)

    def rows(self, documents, *, split):
        """Yields (list of serialized rows, `Statistics` of them) for a group of documents.

        The random numbers depend on the seed and the documents alone. The eval split has one copy.
        """
        settings, vocabulary = self._settings, self._settings.vocabulary
        digests = b"".join(document.digest.to_bytes(8, "big") for document in documents)
        key = int.from_bytes(hashlib.blake2b(digests, digest_size=16).digest(), "big")
        rng = np.random.default_rng([settings.seed, key])
        sentences, cut = self.sentences(documents)
        copies = settings.dupe_factor if split == "train" else 1
        chosen, labels, numbers, counters = self.choose(sentences, rng=rng, copies=copies)
        statistics = Statistics()
        counters |= {
            "documents": len(documents),
            "sentences": len(sentences.starts) - 1,
            "long_sentences_cut": cut,
            "tokens_of_text": len(sentences.tokens),
            "unknown_tokens": int((sentences.tokens == vocabulary.unk_id).sum()),
        }
        if split == "train":
            statistics.unigrams = np.bincount(sentences.tokens, minlength=len(vocabulary))
        yield [], self._named(statistics, counters, split)
        template = settings.template
        tokens = with_special_tokens(sentences.tokens, vocabulary, template)
        for start in range(0, len(numbers), EXAMPLES_AT_ONCE):
            part = slice(start, start + EXAMPLES_AT_ONCE)
            columns = instances.columns(
                *frame_sequences(
                    tokens, [(a[part, 0], a[part, 1] - a[part, 0]) for a in chosen], template
                ),
                labels=None if labels is None else labels[part],
                masker=self.masker,
                seed=settings.seed,
                copies=numbers[part],
            )
            yield self._encode(columns), self._count(columns, split)

    def _encode(self, columns):
        if self._settings.pad:
            columns = instances.padded_columns(
                columns,
                max_length=self._settings.max_length,
                max_predictions=self._settings.max_predictions,
                template=self._settings.template,
            )
        return self._spec.encode(columns)

    def _count(self, columns, split):
        statistics = Statistics()
        _, lengths = columns["input_ids"]
        counters = {"instances": len(lengths), "tokens": int(lengths.sum())}
        if "masked_lm_ids" in columns:
            counters["predictions"] = len(columns["masked_lm_ids"][0])
        if split == "train":
            statistics.lengths = np.bincount(lengths, minlength=self._settings.max_length + 1)
        return self._named(statistics, counters, split)

    def _named(self, statistics, counters, split):
        for name, value in counters.items():
            statistics.counters[f"{split}/{name}"] += value
        return statistics


def _add(counters, **values):
    for name, value in values.items():
        counters[name] = counters.get(name, 0) + value
