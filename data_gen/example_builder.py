"""From documents to serialized examples: split, tokenize, choose segments, mask, encode.

Legend of shapes: R examples, S length of the longest.
"""

import hashlib
from collections import Counter

import numpy as np
import tensorflow as tf

from data_gen import segments
from data_gen.dataset_card import Statistics
from data_gen.documents import parts
from keras_bert.records.masking import example_keys
from keras_bert.records.padding import frame_sequences, pad, with_special_tokens
from keras_bert.text.tokenizer import Tokenizer

# A text without the end of a sentence is tokenized in parts of so many characters.
_MAX_CHARACTERS = 1 << 16
# Sentences that are tokenized at once: single ones take thirty times as long.
_TOKENIZER_BATCH = 2048
# Examples that are masked and encoded at once: they fit into the processor's cache.
EXAMPLES_AT_ONCE = 1024


class ExampleBuilder:
    """Makes examples of groups of documents, by the settings of a `Job`.

    Loads the tokenizer, so that one is made per worker and not per group. `masker` is the `Masker`
    of the examples, or None.
    """

    def __init__(self, job, masker=None):
        self._job = job
        self.masker = masker
        self._tokenizer = Tokenizer(job.vocabulary, lowercase=job.lowercase, template=job.template)
        self._spec = job.spec

    def sentences(self, documents):
        """The tokenized sentences of documents, `segments.Sentences`, and how many were cut."""
        texts, counts = [], []
        for document in documents:
            if document.format == "lines":
                sentences = document.text.split("\n")
            else:
                sentences = segments.split_sentences(document.text)
            if max(map(len, sentences), default=0) > _MAX_CHARACTERS:
                sentences = [
                    part for sentence in sentences for part in parts(sentence, _MAX_CHARACTERS)
                ]
            texts += sentences
            counts.append(len(sentences))
        tokens, lengths = self.tokenize(texts)
        return segments.join(tokens, lengths, counts, longest=self._job.max_tokens)

    def tokenize(self, texts):
        """The ids of all texts, int32 (T,), and the number of each text's, (N,)."""
        ids_of_batches, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for start in range(0, len(texts), _TOKENIZER_BATCH):
            ids = self._tokenizer.tokenize(texts[start : start + _TOKENIZER_BATCH])
            ids_of_batches.append(ids.values.numpy())
            lengths.append(ids.row_lengths().numpy())
        return np.concatenate(ids_of_batches), np.concatenate(lengths)

    def choose(self, sentences, *, rng, copies):
        """Chooses the segments of all copies of the text, in random order.

        Returns ([ranges of segments (R, 2), …], labels of the pairs (R,) or None, copies (R,),
        counters).
        """
        job, counters = self._job, Counter()
        options = dict(max_tokens=job.max_tokens, short_seq_prob=job.short_seq_prob, rng=rng)
        chosen, labels, numbers = [], [], []
        for copy in range(copies):
            if job.objective in ("mlm-nsp", "mlm-sop"):
                is_nsp = job.objective == "mlm-nsp"
                pairs = (segments.pairs if is_nsp else segments.consecutive)(sentences, **options)
                a, b, cut = segments.truncate(pairs.a, pairs.b, max_tokens=job.max_tokens, rng=rng)
                chosen.append(np.concatenate([a, b], axis=1))
                labels.append(pairs.labels)
                counters["truncated_pairs"] += cut
                counters["random_pairs" if is_nsp else "swapped_pairs"] += int(pairs.labels.sum())
                counters["sentences_without_partner"] += pairs.dropped
                if is_nsp:
                    counters["random_from_same_document"] += pairs.same_document
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

    def examples(self, documents, *, split):
        """Yields (list of serialized examples, their `Statistics`) for a group of documents.

        The random numbers depend on the seed and the documents alone. The eval split has one copy.
        """
        job = self._job
        digests = b"".join(document.digest.to_bytes(8, "big") for document in documents)
        key = int.from_bytes(hashlib.blake2b(digests, digest_size=16).digest(), "big")
        rng = np.random.default_rng([job.seed, key])
        sentences, cut = self.sentences(documents)
        copies = job.dupe_factor if split == "train" else 1
        chosen, labels, numbers, counters = self.choose(sentences, rng=rng, copies=copies)
        counters["documents"] = len(documents)
        counters["sentences"] = len(sentences.starts) - 1
        counters["long_sentences_cut"] = cut
        counters["tokens_of_text"] = len(sentences.tokens)
        counters["unknown_tokens"] = int((sentences.tokens == job.vocabulary.unk_id).sum())
        statistics = _statistics(counters, split)
        if split == "train":
            statistics.unigrams = np.bincount(sentences.tokens, minlength=len(job.vocabulary))
        yield [], statistics
        tokens = with_special_tokens(sentences.tokens, job.vocabulary, job.template)
        for start in range(0, len(numbers), EXAMPLES_AT_ONCE):
            part = slice(start, start + EXAMPLES_AT_ONCE)
            ranges = [(bounds[part, 0], bounds[part, 1] - bounds[part, 0]) for bounds in chosen]
            columns = example_columns(
                *frame_sequences(tokens, ranges, job.template),
                labels=None if labels is None else labels[part],
                masker=self.masker,
                seed=job.seed,
                copies=numbers[part],
            )
            yield self._encode(columns), self._count(columns, split)

    def _encode(self, columns):
        if self._job.pad:
            columns = padded_columns(
                columns,
                max_length=self._job.max_length,
                max_predictions=self._job.max_predictions,
                template=self._job.template,
            )
        return self._spec.encode(columns)

    def _count(self, columns, split):
        _, lengths = columns["input_ids"]
        counters = {"instances": len(lengths), "tokens": int(lengths.sum())}
        if "masked_lm_ids" in columns:
            counters["predictions"] = len(columns["masked_lm_ids"][0])
        statistics = _statistics(counters, split)
        if split == "train":
            statistics.lengths = np.bincount(lengths, minlength=self._job.max_length + 1)
        return statistics


def example_columns(sequences, segment_lengths, *, labels, masker, seed, copies):
    """The columns of compact examples, for `FeatureSpec.encode`.

    `sequences` and `segment_lengths` are from `frame_sequences`. `labels` (R,) are those of the
    pairs, or None; `masker` is a `Masker`, or None for examples without masks; `copies` (R,) is the
    number of the copy of the text that each example belongs to.
    """
    lengths = sequences.row_lengths().numpy()
    columns = {"segment_lengths": segment_lengths.numpy()}
    if labels is not None:
        columns["next_sentence_labels"] = labels[:, None]
    if masker is None:
        columns["input_ids"] = (sequences.values.numpy(), lengths)
        return columns
    input_ids = sequences.to_tensor().numpy()  # (R, S), padded with 0
    keys = example_keys(input_ids, lengths, seed=seed, epoch=copies)
    masked = masker.mask(input_ids, lengths, keys)
    inside = np.arange(input_ids.shape[1]) < lengths[:, None]
    columns["input_ids"] = (masked.input_ids[inside], lengths)
    columns["masked_lm_positions"] = masked.positions
    columns["masked_lm_ids"] = masked.ids
    if masked.span_left is not None:
        columns["span_left"] = masked.span_left
        columns["span_right"] = masked.span_right
        columns["span_offset"] = masked.span_offset
    return columns


def padded_columns(columns, *, max_length, max_predictions, template):
    """The columns of padded examples from those of compact ones, by the reader's own `pad`."""
    batch = {
        # Without validation, which would take a third of the time.
        name: tf.RaggedTensor.from_row_lengths(*map(_int32, column), validate=False)
        if isinstance(column, tuple)
        else _int32(column)
        for name, column in columns.items()
    }
    batch = pad(batch, max_length, max_predictions, template=template)
    return {name: value.numpy() for name, value in batch.items()}


def _statistics(counters, split):
    return Statistics(Counter({f"{split}/{name}": value for name, value in counters.items()}))


def _int32(array):
    return tf.constant(array, tf.int32)
