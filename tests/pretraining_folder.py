"""A small data folder for tests of training, written without the data job.

Its language: each word is followed by the next one of a circle of `WORDS` words. So a masked word
can be told from its neighbours, and whether the second segment goes on where the first ended.
"""

import json

import numpy as np
import tensorflow as tf

from keras_bert.records import PAIRED, compact
from keras_bert.records.folder import CARD, COMPLETED, FORMAT_VERSION, shard_name
from keras_bert.records.masking import Masker, example_keys
from keras_bert.records.specs import SPAN_FEATURES
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.seeds import make_rng

WORDS = 20
MAX_LENGTH, MAX_PREDICTIONS = 16, 3
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *(f"w{i}" for i in range(WORDS))])


def make_data_folder(
    folder, *, rows, eval_examples, objective="mlm-nsp", masking="static", shards=3, seed=0, **card
):
    """Writes data and vocab.txt into `folder`; further arguments go into the dataset card."""
    folder.mkdir(parents=True)
    VOCABULARY.save(folder / "vocab.txt")
    generator = make_rng(seed)
    spec = compact(objective=objective, masking=masking)
    splits = {}
    for split, count, parts in (("train", rows, shards), ("eval", eval_examples, 1)):
        tokens, sizes = 0, []
        for index, part in enumerate(np.array_split(np.arange(count), parts)):
            path = folder / shard_name(split, index, parts)
            columns = _rows(generator, len(part), objective, masking)
            with tf.io.TFRecordWriter(str(path)) as writer:
                for record in spec.encode(columns) if len(part) else ():
                    writer.write(record)
            tokens += int(columns["input_ids"][1].sum())
            sizes.append(len(part))
        splits[split] = {"shards": parts, "instances": count, "tokens": tokens}
        splits[split]["shard_instances"] = sizes
    counts = np.where(np.arange(len(VOCABULARY)) < len(SPECIAL_TOKENS), 0, 100)
    (folder / CARD).write_text(
        json.dumps(
            {
                "format_version": FORMAT_VERSION,
                "objective": objective,
                "masking": masking,
                "rows": "compact",
                "max_length": MAX_LENGTH,
                "max_predictions": MAX_PREDICTIONS,
                "seed": seed,
                "settings": {"mask_unit": _unit(objective), "masked_rate": 0.15},
                "vocabulary": {"sha256": VOCABULARY.sha256, "size": len(VOCABULARY)},
                "lowercase": True,
                "splits": splits,
                "unigram_counts": counts.tolist(),
                "unigram_entropy": float(np.log(WORDS)),
                **card,
            }
        )
    )
    (folder / COMPLETED).write_text("")
    return folder


def _unit(objective):
    return "span" if objective == "span" else "token"


def _rows(generator, count, objective, masking):
    """`count` rows [CLS] first [SEP] second [SEP] as columns that a spec encodes.

    Rows of an objective without a next sentence are [CLS] first second [SEP], one segment. For
    mlm-nsp half of the second segments begin anew, for mlm-sop half of the pairs are swapped.
    """
    pairs = objective in PAIRED
    first = generator.integers(4, 7, count)
    second = generator.integers(4, 7, count)
    random_next = generator.integers(0, 2, count) * pairs
    begin = generator.integers(0, WORDS, count)
    jump = generator.integers(3, WORDS - 3, count) * random_next
    lengths = first + second + (3 if pairs else 2)
    ids = np.zeros((count, MAX_LENGTH), np.int32)
    cls, sep, words = VOCABULARY.cls_id, VOCABULARY.sep_id, len(SPECIAL_TOKENS)
    for row in range(count):
        chain = begin[row] + np.arange(first[row] + second[row])
        if objective == "mlm-nsp":
            chain[first[row] :] += jump[row]
        elif random_next[row]:  # the first segment stands behind the second in the circle
            chain[: first[row]] += second[row]
            chain[first[row] :] -= first[row]
        chain = words + chain % WORDS
        middle = [sep] if pairs else []
        text = [cls, *chain[: first[row]], *middle, *chain[first[row] :], sep]
        ids[row, : lengths[row]] = text
    columns = {"segment_lengths": lengths[:, None]}
    if pairs:
        columns = {
            "segment_lengths": np.stack([first + 2, second + 1], axis=1),
            "next_sentence_labels": random_next[:, None],
        }
    if masking == "static":
        masker = Masker(
            vocabulary=VOCABULARY,
            unit=_unit(objective),
            rate=0.15,
            max_predictions=MAX_PREDICTIONS,
        )
        masked = masker.mask(ids, lengths, example_keys(ids, lengths, seed=0, epoch=0))
        ids = masked.input_ids
        columns |= {"masked_lm_positions": masked.positions, "masked_lm_ids": masked.ids}
        if objective == "span":
            columns |= {name: getattr(masked, name) for name in SPAN_FEATURES}
    inside = np.arange(MAX_LENGTH) < lengths[:, None]
    return {"input_ids": (ids[inside], lengths), **columns}
