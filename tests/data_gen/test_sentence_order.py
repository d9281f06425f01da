"""Rows of two consecutive segments, half of them swapped (ALBERT)."""

import numpy as np
import pytest
import tensorflow as tf

from data_gen.pretraining_data import pretraining_data
from data_gen.segments import consecutive, join
from keras_bert.records import DataFolder
from keras_bert.records.padding import pad
from tests.data_gen.conftest import NumberedCorpus
from tests.seeds import make_rng
from tests.undrawn import undrawn
from tests.unmasked import unmask

LENGTH, PREDICTIONS = 48, 7


def chosen(document_sentences, *, seed=0, longest=30, **options):
    """-> (`Sentences` of numbered tokens, what `consecutive` makes of them)."""
    rng = make_rng(seed)
    lengths = rng.integers(1, longest, sum(document_sentences))
    tokens = np.arange(lengths.sum(), dtype=np.int32)
    sentences, _ = join(tokens, lengths, document_sentences, longest=1000)
    options = {"max_tokens": 60, "short_seq_prob": 0.1, "rng": rng, **options}
    return sentences, consecutive(sentences, **options)


def test_two_segments_are_one_stretch_of_a_document_and_the_label_is_their_order():
    sentences, segments = chosen([30, 1, 2, 60, 8, 1, 25] * 100)
    earlier, later = segments.a.copy(), segments.b.copy()
    swap = segments.labels == 1
    earlier[swap], later[swap] = segments.b[swap], segments.a[swap]
    np.testing.assert_array_equal(earlier[:, 1], later[:, 0])
    assert (earlier[:, 0] < earlier[:, 1]).all() and (later[:, 0] < later[:, 1]).all()
    bounds = sentences.starts[sentences.documents]
    document = np.searchsorted(bounds, earlier[:, 0], side="right")
    np.testing.assert_array_equal(np.searchsorted(bounds, later[:, 1] - 1, side="right"), document)
    # Every token stands in one row, but for the sentences of one token that stood alone.
    covered = np.concatenate([np.arange(*edges) for edges in (*earlier, *later)])
    assert len(set(covered.tolist())) == len(covered) == len(sentences.tokens) - segments.dropped
    assert segments.dropped > 0  # no sentence is in one draw of six for a fifth of this text
    count = len(swap)
    assert count > 400 and abs(swap.mean() - 0.5) < 4.5 * np.sqrt(0.25 / count)


def test_how_long_and_where_split_tells_nothing_of_the_order():
    """A head could learn it from the lengths alone, were they others in swapped pairs."""
    _, segments = chosen([50] * 80, seed=1)
    sizes = np.stack([np.diff(segments.a)[:, 0], np.diff(segments.b)[:, 0]], axis=1)
    swap = segments.labels == 1
    for side in (0, 1):
        sizes_by_order = sizes[~swap, side], sizes[swap, side]
        error = np.sqrt(sum(sample.var() / len(sample) for sample in sizes_by_order))
        assert abs(sizes_by_order[0].mean() - sizes_by_order[1].mean()) < 4 * error


def test_sentences_that_stand_alone_are_split_in_the_middle():
    _, segments = chosen([1] * 50, longest=20)
    sizes = np.diff(segments.a) + np.diff(segments.b)
    assert (np.abs(np.diff(segments.a) - np.diff(segments.b)) <= 1).all() and sizes.min() >= 2


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """masking or "padded" -> `DataFolder`; of one corpus, in which every token stands once."""
    root = tmp_path_factory.mktemp("orders")
    corpus = NumberedCorpus([1, 2, 5, 12, 20, 30] * 6)
    files = corpus.write(root / "text", names="ab")
    made = {}
    for name in ("static", "dynamic", "padded"):
        with undrawn():
            pretraining_data(
                input=files, vocab=corpus.vocabulary, output=root / name, input_format="lines",
                objective="mlm-sop", max_length=LENGTH, max_predictions=PREDICTIONS,
                masking="dynamic" if name == "dynamic" else "static", pad=name == "padded",
                dupe_factor=1, eval_fraction=0.2, beam_options=["--direct_num_workers=1"],
            )  # fmt: skip
        made[name] = DataFolder.open(root / name)
    return made


def train_examples(folder):
    """The train rows as dense arrays by name, unmasked."""
    parsed = folder.spec.parse(list(tf.data.TFRecordDataset(folder.shards("train"))))
    rows = (
        pad(parsed, LENGTH, PREDICTIONS, template=folder.card.template)
        if folder.spec.kind == "compact"
        else parsed
    )
    rows = {name: value.numpy() for name, value in rows.items()}
    if "masked_lm_ids" in rows:
        is_predicted = rows["masked_lm_weights"] > 0
        positions = rows["masked_lm_positions"][is_predicted], is_predicted.sum(axis=1)
        rows["input_ids"] = unmask(
            rows["input_ids"], positions, (rows["masked_lm_ids"][is_predicted],)
        )
    return rows


def test_the_label_of_a_row_is_the_order_of_its_text(folders):
    folder = folders["static"]
    rows = train_examples(folder)
    swapped = 0
    for ids, mask, segment, [label] in zip(
        *(rows[n] for n in ("input_ids", "input_mask", "segment_ids", "next_sentence_labels")),
        strict=True,
    ):
        first = ids[(mask == 1) & (segment == 0)][1:-1]
        second = ids[segment == 1][:-1]
        for part in (first, second):
            np.testing.assert_array_equal(part, np.arange(part[0], part[0] + len(part)))
        assert (first[0] > second[0]) == label
        swapped += int(label)
    counters = folder.card.splits["train"].counters
    assert counters["swapped_pairs"] == swapped and "random_pairs" not in counters
    assert folder.card.objective == "mlm-sop" and folder.card.has_pairs
    assert 0.3 < swapped / len(rows["input_ids"]) < 0.7


@pytest.mark.parametrize("name", ["dynamic", "padded"])
def test_rows_without_masks_and_padded_rows_are_the_same_rows(folders, name):
    expected, examples = train_examples(folders["static"]), train_examples(folders[name])
    for feature in ("input_ids", "input_mask", "segment_ids", "next_sentence_labels"):
        np.testing.assert_array_equal(examples[feature], expected[feature], err_msg=feature)
