"""Laws of the rows that a job writes, read back from its folder."""

import collections
import contextlib
import json
import random

import numpy as np
import pytest
import tensorflow as tf

from data_gen.dataset_card import unigram_entropy
from data_gen.pretraining_data import pretraining_data
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.cli.main import main
from keras_bert.records import DataFolder
from keras_bert.records.inspection import read_instances, verify
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.text import Tokenizer
from keras_bert.text.template import Template
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, SpecialTokens
from tests.messages import raises_input_error
from tests.seeds import shifted
from tests.undrawn import undrawn

LENGTH, PREDICTIONS, COPIES = 64, 10, 3


def make(corpus, files, output, *, is_drawn=False, **kwargs):
    settings = {"max_length": LENGTH, "max_predictions": PREDICTIONS, "dupe_factor": COPIES}
    settings |= {"shard_bytes": 12_000, "input_format": "lines", "eval_fraction": 0.1}
    settings |= {"beam_options": ["--direct_num_workers=1"]}
    with contextlib.nullcontext() if is_drawn else undrawn():
        return pretraining_data(
            input=files, vocab=corpus.vocabulary, output=output, **(settings | kwargs)
        )


def examples_of(path, split):
    """The rows of a split as dicts of lists of ints."""
    folder = DataFolder.open(path)
    serialized = list(tf.data.TFRecordDataset(folder.shards(split)).as_numpy_iterator())
    parsed = folder.spec.parse(serialized)
    columns = {
        name: value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()
        for name, value in parsed.items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def restored(row):
    """A row's tokens before masking."""
    tokens = list(row["input_ids"])
    for position, token in zip(row["masked_lm_positions"], row["masked_lm_ids"], strict=True):
        tokens[position] = token
    return tokens


@pytest.fixture(scope="module")
def made(corpus, corpus_files, tmp_path_factory):
    output = tmp_path_factory.mktemp("made") / "data"
    card = make(corpus, corpus_files, output, is_drawn=True)
    return card, {split: examples_of(output, split) for split in ("train", "eval")}, output


def test_rows_of_another_template(corpus, corpus_files, tmp_path):
    """RoBERTa's, with its own special tokens: framed, checked, shown and padded by it."""
    special_tokens = SpecialTokens(pad="<pad>", unk="[UNK]", cls="<s>", sep="</s>", mask="<mask>")
    words = corpus.vocabulary.tokens[len(SPECIAL_TOKENS) :]
    vocabulary = WordPieceVocabulary(
        ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", *words], special_tokens=special_tokens
    )
    template = Template(
        single=(("<s>", 0), (0, 0), ("</s>", 0)),
        pair=(("<s>", 0), (0, 0), ("</s>", 0), ("</s>", 0), (1, 0), ("</s>", 0)),
    )
    Tokenizer(vocabulary, lowercase=True, template=template).save(tmp_path / "tokenizer")
    options = {"vocab": tmp_path / "tokenizer", "objective": "mlm-sop", "beam_options": []}
    options |= {"input": corpus_files, "max_length": LENGTH, "input_format": "lines"}
    with undrawn():
        card = pretraining_data(**options, output=tmp_path / "data")
    assert (card.template, card.special_tokens) == (template, special_tokens)
    folder = DataFolder.open(tmp_path / "data")
    assert folder.vocabulary() == vocabulary and verify(folder)["train"]["rows"] > 100
    for row in examples_of(tmp_path / "data", "train")[:50]:
        tokens, (first, second) = restored(row), row["segment_lengths"]
        assert (tokens[0], tokens[first - 2 : first], tokens[-1]) == (0, [2, 2], 2)
        assert 5 <= min(tokens[1 : first - 2] + tokens[first:-1])
        assert first + second == len(tokens) <= LENGTH
    shown = next(read_instances(folder, folder.shards("train"), count=1)).tokens
    assert [token.text for token in shown if token.segment is None] == ["<s>", *["</s>"] * 3]
    x, _, _ = next(
        iter(training_dataset(folder, vocabulary=vocabulary, seed=shifted(0), batch_size=4))
    )
    assert not x["segment_ids"].numpy().any()
    # The folder is a vocabulary, too, as any other.
    loaded = Tokenizer.from_vocab(tmp_path / "data")
    assert (loaded.template, loaded.vocabulary) == (template, vocabulary)
    with raises_input_error("segment ids 0 and 1, which the template <s> a </s> </s>"):
        pretraining_data(**options, output=tmp_path / "padded", pad=True)


def segments(corpus, row):
    """The text of the segments of a row, without special tokens."""
    vocabulary, tokens = corpus.vocabulary, restored(row)
    first, second = row["segment_lengths"]
    assert first + second == len(tokens)
    assert tokens[0] == vocabulary.cls_id
    assert tokens[first - 1] == tokens[-1] == vocabulary.sep_id
    return tokens[1 : first - 1], tokens[first:-1]


@pytest.mark.parametrize("split", ["train", "eval"])
def test_every_row_is_two_stretches_of_text_with_a_true_label(corpus, made, split):
    rows = made[1][split]
    assert len(rows) > 20
    for row in rows:
        assert len(row["input_ids"]) <= LENGTH
        a, b = segments(corpus, row)
        for segment in (a, b):
            assert segment == list(range(segment[0], segment[0] + len(segment)))  # contiguous
            assert len({corpus.document_of[token] for token in segment}) == 1
        same = corpus.document_of[a[0]] == corpus.document_of[b[0]]
        if row["next_sentence_labels"] == [0]:
            assert same and b[0] > a[-1]
            # Only truncation parts them.
            assert b[0] == a[-1] + 1 or len(row["input_ids"]) == LENGTH
        else:
            assert not same


def test_random_segments_come_from_the_same_work_item(corpus, made):
    """A shard is made of its own documents alone: no other item has to be read for it."""
    folder, shards = DataFolder.open(made[2]), []
    for shard in folder.shards("train"):
        parsed = folder.spec.parse(list(tf.data.TFRecordDataset(shard).as_numpy_iterator()))
        token_ids = set(parsed["masked_lm_ids"].values.numpy().tolist())
        token_ids |= set(parsed["input_ids"].values.numpy().tolist())
        # A tenth of the masked tokens is replaced by any piece: a document is there if much of it.
        documents = collections.Counter(
            corpus.document_of[token] for token in token_ids if token >= corpus.first
        )
        sizes = collections.Counter(corpus.document_of)
        shards.append({d for d, count in documents.items() if count > 0.5 * sizes[d]})
    assert len(shards) > 5
    assert sum(map(len, shards)) == len(set().union(*shards))


def test_some_rows_are_short(made):
    card, rows, _ = made
    assert card.settings.short_rate == 0.1
    assert 0.05 < np.mean([len(row["input_ids"]) < LENGTH // 2 for row in rows["train"]]) < 0.6


def test_about_half_of_the_pairs_are_random(corpus, made):
    rows = made[1]["train"]
    fraction = np.mean([row["next_sentence_labels"][0] for row in rows])
    # More than half: the last sentence of a document, left alone, has to take a random partner.
    assert 0.45 < fraction < 0.65


def test_masks_are_lawful(corpus, made):
    for row in made[1]["train"] + made[1]["eval"]:
        positions, tokens = row["masked_lm_positions"], restored(row)
        assert positions == sorted(set(positions))
        count = len(tokens)
        assert len(positions) == min(PREDICTIONS, max(1, round(count * 0.15)), count - 3)
        special = set(corpus.vocabulary.special_ids.tolist())
        assert not special & {tokens[position] for position in positions}
        put = {row["input_ids"][position] for position in positions}
        assert put & special <= {corpus.vocabulary.mask_id}


def test_copies_differ(made):
    rows = [tuple(restored(row)) for row in made[1]["train"]]
    assert len(set(rows)) > 0.8 * len(rows)
    masked = {(tuple(restored(row)), tuple(row["masked_lm_positions"])) for row in made[1]["train"]}
    assert len(masked) > 0.97 * len(rows)


def test_rows_are_shuffled(corpus, made):
    documents = [corpus.document_of[segments(corpus, row)[0][0]] for row in made[1]["train"]]
    neighbours = np.mean(np.array(documents[1:]) == documents[:-1])
    assert neighbours < 0.2


def test_splits_fraction_no_document_and_lose_none(corpus, made):
    documents_of_split = {}
    for split, rows in made[1].items():
        documents_of_split[split] = {
            corpus.document_of[token]
            for row in rows
            for segment in segments(corpus, row)
            for token in segment
        }
    assert not documents_of_split["train"] & documents_of_split["eval"]
    assert documents_of_split["train"] | documents_of_split["eval"] == set(
        range(len(corpus.documents))
    )
    assert 3 <= len(documents_of_split["eval"]) <= 40


def test_the_card_tells_what_is_there(corpus, made):
    card, rows, output = made
    assert card.to_json() == (output / "dataset_card.json").read_text()
    assert (output / "COMPLETED").exists() and not (output / "IN_PROGRESS").exists()
    for split, counts in card.splits.items():
        assert counts.instances == len(rows[split])
        assert counts.tokens == sum(len(row["input_ids"]) for row in rows[split])
        assert counts.counters["predictions"] == sum(
            len(row["masked_lm_ids"]) for row in rows[split]
        )
        labels = sum(row["next_sentence_labels"][0] for row in rows[split])
        assert counts.counters["random_pairs"] == labels
        folder = DataFolder.open(output)
        assert counts.shards == len(folder.shards(split)) >= 1
        assert counts.counters["bytes"] == sum(
            tf.io.gfile.stat(s).length for s in folder.shards(split)
        )
    assert card.splits["train"].shards > 5
    documents = [counts.counters["documents"] for counts in card.splits.values()]
    assert sum(documents) == card.counters["documents"] == len(corpus.documents)
    assert card.counters["files_of_form_lines"] == 8
    lengths = collections.Counter(len(row["input_ids"]) for row in rows["train"])
    assert card.length_histogram == tuple(lengths[n] for n in range(LENGTH + 1))
    # Every token of the train split's text once, whatever the number of copies.
    counts = np.array(card.unigram_counts)
    assert set(counts[corpus.first :]) == {0, 1}
    assert counts.sum() == card.splits["train"].counters["tokens_of_text"]
    assert card.unigram_entropy == pytest.approx(np.log(counts.sum()))
    DataFolder.open(output).check_vocabulary(corpus.vocabulary)


def test_entropy_counts_ordinary_tokens_only():
    assert unigram_entropy([9, 5, 1, 1, 2], [0, 1]) == pytest.approx(1.5 * np.log(2))
    assert unigram_entropy([9, 0], [0]) == 0
    assert f"{unigram_entropy([9, 1], [0]):.3f}" == "0.000"  # without a sign


def test_the_objective_mlm_packs_whole_sentences(corpus, corpus_files, tmp_path):
    make(corpus, corpus_files, tmp_path / "data", objective="mlm", dupe_factor=1)
    seen = []
    ends = {s[-1] for d in corpus.documents for s in d}
    for row in examples_of(tmp_path / "data", "train") + examples_of(tmp_path / "data", "eval"):
        tokens = restored(row)
        assert row["segment_lengths"] == [len(tokens)]
        assert "next_sentence_labels" not in row
        text = tokens[1:-1]
        assert text == list(range(text[0], text[0] + len(text))) and text[-1] in ends
        assert len({corpus.document_of[token] for token in text}) == 1
        seen += text
    assert sorted(seen) == list(range(corpus.first, len(corpus.vocabulary)))


def test_the_objective_span_stores_boundaries(corpus, corpus_files, tmp_path):
    make(corpus, corpus_files, tmp_path / "data", objective="span", dupe_factor=1, is_drawn=True)
    for row in examples_of(tmp_path / "data", "train"):
        masked = set(row["masked_lm_positions"])
        assert masked
        for position, left, right, offset in zip(
            *(row[n] for n in ("masked_lm_positions", "span_left", "span_right", "span_offset")),
            strict=True,
        ):
            assert left < position < right <= len(row["input_ids"]) - 1
            assert offset == position - left
            assert {left, right}.isdisjoint(masked)
            assert set(range(left + 1, right)) <= masked


def test_dynamic_rows_are_unmasked(corpus, corpus_files, tmp_path):
    options = {"masking": "dynamic", "dupe_factor": 1}
    card = make(corpus, corpus_files, tmp_path / "data", **options, is_drawn=True)
    for row in examples_of(tmp_path / "data", "train"):
        assert set(row) == {"input_ids", "segment_lengths", "next_sentence_labels"}
        assert corpus.vocabulary.mask_id not in row["input_ids"]
    assert "predictions" not in card.splits["train"].counters


def test_padded_rows_hold_what_compact_rows_hold(corpus, corpus_files, made, tmp_path):
    make(corpus, corpus_files, tmp_path / "data", pad=True)
    padded = examples_of(tmp_path / "data", "train")
    compact = made[1]["train"]
    assert len(padded) == len(compact)
    for dense, row in zip(padded, compact, strict=True):
        length, first = len(row["input_ids"]), row["segment_lengths"][0]
        assert dense["input_ids"] == row["input_ids"] + [0] * (LENGTH - length)
        assert dense["input_mask"] == [1] * length + [0] * (LENGTH - length)
        assert dense["segment_ids"] == (
            [0] * first + [1] * (length - first) + [0] * (LENGTH - length)
        )
        count = len(row["masked_lm_ids"])
        assert dense["masked_lm_ids"] == row["masked_lm_ids"] + [0] * (PREDICTIONS - count)
        assert dense["masked_lm_weights"] == [1.0] * count + [0.0] * (PREDICTIONS - count)
        assert dense["next_sentence_labels"] == row["next_sentence_labels"]


def shard_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.tfrecord*")}


def test_the_same_bytes_whatever_the_files_are_called_and_on_a_second_run(corpus, made, tmp_path):
    """Documents keep their files, whose names and order change."""
    files = corpus.write(tmp_path / "text", names="hgfedcba")
    expected = shard_bytes(made[2])
    for _ in range(2):
        make(corpus, files, tmp_path / "data", force=True)
        assert shard_bytes(tmp_path / "data") == expected


def test_another_seed_gives_other_rows_of_the_same_documents(corpus, corpus_files, made, tmp_path):
    make(corpus, corpus_files, tmp_path / "data", seed=1)
    other = shard_bytes(tmp_path / "data")
    expected = shard_bytes(made[2])
    assert other.keys() == expected.keys()
    assert not set(other.values()) & set(expected.values())


@pytest.mark.slow
def test_the_same_bytes_with_several_processes(corpus, made, tmp_path):
    """The files have other names, are given one by one, and in another order."""
    corpus.write(tmp_path / "text", names="hgfedcba")
    files = [str(tmp_path / "text" / f"{name}.txt") for name in "cahbgdfe"]
    make(corpus, files, tmp_path / "data", beam_options=["--direct_num_workers=4"])
    assert shard_bytes(tmp_path / "data") == shard_bytes(made[2])


def test_a_tokenizer_is_loaded_for_a_step_and_not_for_each_item(
    corpus, corpus_files, tmp_path, monkeypatch
):
    from data_gen import example_builder

    loaded, original = [], example_builder.Tokenizer

    def load(*arguments, **options):
        loaded.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(example_builder, "Tokenizer", load)
    card = make(corpus, corpus_files, tmp_path / "data", replacement="unigram")
    assert card.splits["train"].shards > 5
    assert len(loaded) == 2  # for counting pieces, and for writing shards


def test_a_real_book(shared_data, minilm_folder, tmp_path):
    """The rows of a book are its own text, piece by piece."""
    from keras_bert.text.tokenizer import Tokenizer

    path = shared_data / "books" / "frankenstein.txt"
    pretraining_data(
        input=path, vocab=minilm_folder / "vocab.txt", output=tmp_path / "data", dupe_factor=1
    )
    tokenizer = Tokenizer.from_vocab(minilm_folder / "vocab.txt")
    whole = tokenizer.tokenize([path.read_text()]).values.numpy()
    text = whole.astype(np.uint16).tobytes()
    rows = examples_of(tmp_path / "data", "train")
    assert len(rows) > 500
    for row in random.Random(shifted(0)).sample(rows, 100):
        tokens, first = restored(row), row["segment_lengths"][0]
        for segment in (tokens[1 : first - 1], tokens[first:-1]):
            assert np.array(segment, np.uint16).tobytes() in text


def test_gzip_gives_the_same_documents(corpus, tmp_path):
    import gzip

    plain = corpus.write(tmp_path / "plain", names="a")
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "plain" / "a.txt").read_bytes()))
    counts = []
    for name, files in (("1", plain), ("2", str(tmp_path / "a.gz"))):
        card = make(corpus, files, tmp_path / name, eval_fraction=0, dupe_factor=1)
        counts.append(card)
        assert card.splits["eval"].shards == card.splits["eval"].instances == 0
    # A compressed file is one item, its text made into rows group by group.
    assert counts[0].splits["train"].shards > 5
    assert counts[1].splits["train"].shards == 1
    for name in ("documents", "sentences", "tokens_of_text"):
        assert counts[0].splits["train"].counters[name] == counts[1].splits["train"].counters[name]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "a.txt is empty"),
        (" \n\n \t \n", "has no text for an example"),
        ("word", "has no text for an example"),
        (b"Fine.\nOne.\n\nCaf\xe9.\nx.\n", "a.txt, line 4 is not UTF-8"),
        (b"Fine.\nOne.\n\nA\0b.\nx.\n", "a.txt, line 4 contains a NUL"),
        ("Fine.\n".encode("utf-16"), "a.txt is UTF-16. Save it as UTF-8"),
    ],
)
def test_bad_text_is_one_sentence_and_leaves_nothing(corpus, tmp_path, text, message):
    path = tmp_path / "a.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with raises_input_error(message) as raised:
        make(corpus, str(path), tmp_path / "data")
    assert "while running" not in str(raised.value)
    assert not (tmp_path / "data").exists()


def test_what_was_left_out_is_told_where_nothing_is_left(corpus, tmp_path):
    """It was said to be white space, or sentences too short."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": 1}\n{"text": "A fine text."}\n')
    settings = {"input_format": None, "bad_lines": "skip", "min_characters": 100}
    message = r"Left out: 1 line \(without a text field\), 1 document \(too short\)\.$"
    with pytest.raises(InputError, match=message):
        make(corpus, str(path), tmp_path / "data", **settings)


def test_bad_lines_can_be_skipped_and_are_counted_by_their_reasons(corpus, tmp_path, capsys):
    path = tmp_path / "a.txt"
    bad = b"\ncaf\xe9\nna\xefve\nA\0b\n\n"
    path.write_bytes(corpus.text(4).encode() + bad + corpus.text(5).encode())
    (tmp_path / "b.jsonl").write_text('{"text": "w1 w2. w3."}\n{"text"\n{"txt": "w4"}\n')
    # So many documents that some are in the train split.
    unheard = [json.dumps({"text": "An unheard word. " * (count + 10)}) for count in range(30)]
    (tmp_path / "c.jsonl").write_text("\n".join(unheard))
    corpus.vocabulary.save(tmp_path / "vocab.txt")
    arguments = ["pretraining-data", "--input", str(path), str(tmp_path / "b.jsonl")]
    arguments += [str(tmp_path / "c.jsonl"), "--vocab", str(tmp_path / "vocab.txt")]
    arguments += ["--output", str(tmp_path / "data")]
    arguments += ["--bad-lines", "skip", "--max-length", "16", "--max-predictions", "2"]
    arguments += ["--mlm-probability", "0.25", "--direct_num_workers=1"]
    assert main(arguments) == 0
    card = DataFolder.open(tmp_path / "data").card
    skipped = {k: v for k, v in card.counters.items() if k.startswith("skipped")}
    assert skipped == {
        "skipped_lines_not_utf8": 2,
        "skipped_lines_with_nul": 1,
        "skipped_lines_not_json": 1,
        "skipped_lines_without_text": 1,
    }
    printed = capsys.readouterr().out
    assert "Skipped 2 lines: not UTF-8." in printed and "Skipped 1 line: with a NUL." in printed
    train = card.splits["train"].counters
    made_of = f"made of {train['sentences']} sentences with {train['tokens_of_text']:,} tokens"
    assert made_of in printed
    assert "Note: " in printed and "of the tokens are [UNK]" in printed
    assert "12.5 % of 16 tokens; with --max-predictions 4 all examples have" in printed
    assert train["truncated_pairs"] > 0
    assert f"; {counted(train['truncated_pairs'], 'pair')} truncated" in printed


@pytest.mark.parametrize(
    "setting, message",
    [
        ({"objective": "clm"}, "`objective` is 'clm'"),
        ({"masking": "both"}, "`masking` is 'both'"),
        ({"mask_unit": "span"}, "`mask_unit` is 'span'"),
        ({"max_length": 4}, "`max_length` must be at least 8. Received: 4"),
        ({"max_predictions": 0}, "`max_predictions` must be at least 1. Received: 0"),
        ({"max_predictions": 65}, "`max_predictions` is 65"),
        ({"dupe_factor": 0}, "`dupe_factor` must be at least 1. Received: 0"),
        ({"mlm_probability": 1.5}, "`mlm_probability` must be at most 1. Received: 1.5"),
        ({"eval_fraction": -0.1}, "`eval_fraction` must be at least 0. Received: -0.1"),
        ({"seed": -1}, "`seed` must be at least 0. Received: -1"),
        ({"pad": True, "masking": "dynamic"}, "`pad` needs static masks"),
        ({"input_format": "prose"}, "`input_format` is 'prose'"),
        ({"beam_options": ["--no_such_option=1"]}, "Unknown option --no_such_option"),
    ],
)
def test_a_wrong_setting_is_one_sentence(corpus, corpus_files, tmp_path, setting, message):
    with raises_input_error(message):
        make(corpus, corpus_files, tmp_path / "data", **setting)
    assert not (tmp_path / "data").exists()


def test_a_vocabulary_without_mask_is_one_sentence(corpus_files, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    with raises_input_error("vocab.txt has no [MASK]"):
        pretraining_data(input=corpus_files, vocab=tmp_path / "vocab.txt", output=tmp_path / "data")


def test_unigram_replacements_follow_the_text(corpus, tmp_path):
    """A text of "w1" and, one time in four, "w2": no other piece replaces anything."""
    rng = random.Random(shifted(0))
    text = "\n\n".join(
        "\n".join(" ".join(rng.choices(["w1", "w2"], [3, 1], k=20)) for _ in range(20))
        for _ in range(60)
    )
    (tmp_path / "a.txt").write_text(text + "\n")
    options = dict(mlm_probability=1.0, max_predictions=60, eval_fraction=0, dupe_factor=4)
    put = {}
    for replacement in ("unigram", "uniform"):
        output = tmp_path / replacement
        make(corpus, str(tmp_path / "a.txt"), output, replacement=replacement, **options)
        put[replacement] = collections.Counter(
            row["input_ids"][position]
            for row in examples_of(output, "train")
            for position, token in zip(
                row["masked_lm_positions"], row["masked_lm_ids"], strict=True
            )
            if token == corpus.vocabulary.id("w1")
        )
    w1, w2 = corpus.vocabulary.id("w1"), corpus.vocabulary.id("w2")
    assert set(put["unigram"]) == {w1, w2, corpus.vocabulary.mask_id}
    total = sum(put["unigram"].values())
    # A tenth of the tokens is replaced, a quarter of these by w2.
    assert put["unigram"][w2] / total == pytest.approx(0.025, abs=0.005)
    assert len(put["uniform"]) > 100


def replaced(folder):
    """The pieces that stand where others stood, of all rows that training gets in two epochs."""
    from keras_bert.tasks.pretraining.features import training_dataset

    put = set()
    batches = 2 * folder.card.splits["train"].instances // 16
    dataset = training_dataset(
        folder, vocabulary=folder.vocabulary(), batch_size=16, seed=shifted(1)
    )
    for x, y, weights in dataset.take(batches).as_numpy_iterator():
        filled = weights["masked_lm"] > 0
        seen = x["input_ids"][np.nonzero(filled)[0], x["masked_lm_positions"][filled]]
        put |= set(seen[seen != y["masked_lm"][filled]].tolist())
    return put - {folder.vocabulary().mask_id}


def test_unigram_replacements_have_their_counts_from_beside_the_vocabulary_or_from_the_card(
    corpus, corpus_files, tmp_path
):
    """Beside the vocabulary all counts are on "w7", which is not what the text has."""
    vocab = tmp_path / "vocab.txt"
    corpus.vocabulary.save(vocab)
    w7 = corpus.vocabulary.id("w7")
    counts = [f"{token}\t{9 * (token == 'w7')}\n" for token in corpus.vocabulary.tokens]
    (tmp_path / "vocab.counts.tsv").write_text("".join(counts))
    options = dict(
        input=corpus_files, vocab=vocab, input_format="lines", dupe_factor=1, max_length=LENGTH
    )
    options |= dict(replacement="unigram", beam_options=["--direct_num_workers=1"])
    cards = {}
    for masking in ("static", "dynamic"):
        with undrawn():
            pretraining_data(output=tmp_path / masking, masking=masking, **options)
        folder = DataFolder.open(tmp_path / masking)
        cards[masking] = folder.card
        replacements = replaced(folder)
        assert replacements == {w7} if masking == "static" else len(replacements) > 100
    assert cards["static"].settings.replacement_counts == "vocabulary"
    assert cards["dynamic"].settings.replacement_counts is None
    assert cards["static"].unigram_counts == cards["dynamic"].unigram_counts
    (tmp_path / "vocab.counts.tsv").write_text("".join(counts[:-1]))
    with raises_input_error(f"vocab.counts.tsv, line {len(counts) - 1} is the last"):
        pretraining_data(output=tmp_path / "third", **options)
    assert not (tmp_path / "third").exists()


def test_gzip_shards_hold_the_same_rows(corpus, corpus_files, made, tmp_path):
    for name in ("a", "b"):
        card = make(corpus, corpus_files, tmp_path / name, compression="gzip")
    folder = DataFolder.open(tmp_path / "a")
    assert folder.compression == "GZIP" and card.compression == "gzip"
    for split in ("train", "eval"):
        plain = DataFolder.open(made[2]).shards(split)
        packed = folder.shards(split)
        assert len(packed) == len(plain) and all(path.endswith(".gz") for path in packed)
        got = list(tf.data.TFRecordDataset(packed, "GZIP").as_numpy_iterator())
        assert got == list(tf.data.TFRecordDataset(plain).as_numpy_iterator())
    assert shard_bytes(tmp_path / "a") == shard_bytes(tmp_path / "b")


def test_duplicates_are_read_once_whatever_the_files_are_called(corpus, tmp_path):
    texts = [corpus.text(index) for index in range(60)]
    for order, names in (("first", "abc"), ("second", "cba")):
        (tmp_path / order).mkdir()
        # Documents 10 to 19 stand in two files, and 15 to 19 twice in one; one file stands twice.
        parts = [texts[:20] + texts[15:20], texts[10:40], texts[40:]]
        for name, part in zip(names, parts, strict=True):
            (tmp_path / order / f"{name}.txt").write_text("\n\n".join(part))
        (tmp_path / order / "z.txt").write_text("\n\n".join(texts[10:40]))
    card = make(corpus, str(tmp_path / "first" / "*.txt"), tmp_path / "1", drop_duplicates=True)
    make(corpus, str(tmp_path / "second" / "*.txt"), tmp_path / "2", drop_duplicates=True)
    assert shard_bytes(tmp_path / "1") == shard_bytes(tmp_path / "2")
    assert card.counters["dropped_duplicates"] == 5 + 10 + 30
    assert sum(split.counters["documents"] for split in card.splits.values()) == 60
    assert set(card.unigram_counts) <= {0, 1}


def test_filters_leave_documents_out_and_count_them(corpus, tmp_path):
    documents = {
        "kept": corpus.text(3) + "\n" + corpus.text(5),
        "short": "w1 w2.\nw3.",
        "long": corpus.text(4) + "\nw9" * 3000,
        "digits": "\n".join("12345 67890 24680 13579 12345" + str(n) for n in range(9)),
        "repeated": "\n".join(["w1 w2 w3 w4 w5 w6 w7 w8 w9"] * 9),
    }
    (tmp_path / "a.txt").write_text("\n\n".join(documents.values()))
    card = make(
        corpus, str(tmp_path / "a.txt"), tmp_path / "data", min_characters=20,
        max_characters=5000, min_letters=0.1, max_repeated_lines=0.5, eval_fraction=0,
    )  # fmt: skip
    assert card.counters["documents"] == card.splits["train"].counters["documents"] == 1
    for reason in ("too_short", "too_long", "few_letters", "repeated_lines"):
        assert card.counters[f"dropped_{reason}"] == 1


def test_tfds_opens_the_folder(corpus, corpus_files, made):
    tfds = pytest.importorskip("tensorflow_datasets")
    builder = tfds.builder_from_directory(str(made[2]))
    for split, rows in made[1].items():
        assert builder.info.splits[split].num_examples == len(rows)
        # tfds reads the shards side by side, so in another order.
        got = [
            {name: value.tolist() for name, value in row.items()}
            for row in tfds.as_numpy(builder.as_dataset(split=split))
        ]
        key = str
        assert sorted(got, key=key) == sorted(
            ({name: row[name] for name in got[0]} for row in rows), key=key
        )


def test_the_card_is_drawn(made):
    pytest.importorskip("matplotlib")
    data = (made[2] / "dataset_card.png").read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) > 10_000


def test_the_card_of_any_script_is_drawn_without_a_word(tmp_path, recwarn, capfd):
    """The font of the picture has no Chinese, and "$" begins a formula."""
    pytest.importorskip("matplotlib")
    vocabulary = WordPieceVocabulary([*SPECIAL_TOKENS, "我", "们", "$", "\\", "##é", "_", "^{"])
    (tmp_path / "a.txt").write_text("我 们 $ \\ 我 们.\n我 $.\n\n我 我 $ _ 们\n")
    card = pretraining_data(
        input=str(tmp_path / "a.txt"), vocab=vocabulary, output=tmp_path / "data",
        input_format="lines", eval_fraction=0, beam_options=["--direct_num_workers=1"],
    )  # fmt: skip
    assert card.unigram_counts[5] == 5
    assert (tmp_path / "data" / "dataset_card.png").read_bytes().startswith(b"\x89PNG")
    assert not [warning for warning in recwarn if "lyph" in str(warning.message)]
    assert "lyph" not in capfd.readouterr().err


def test_a_document_longer_than_a_shard_takes_random_segments_from_its_own_distant_parts(
    corpus, tmp_path
):
    sentences = [" ".join(f"w{n}" for n in range(k, k + 9)) for k in range(0, 9000, 9)]
    (tmp_path / "a.txt").write_text("\n".join(sentences))
    card = make(corpus, str(tmp_path / "a.txt"), tmp_path / "data", shard_bytes=5000)
    train = card.splits["train"]
    assert train.shards == train.counters["documents"] == 1 and card.splits["eval"].instances == 0
    assert train.counters["random_from_same_document"] == train.counters["random_pairs"] > 100
    for row in examples_of(tmp_path / "data", "train"):
        a, b = segments(corpus, row)
        if row["next_sentence_labels"] == [1]:
            assert b[0] > a[-1] + LENGTH or a[0] > b[-1] + LENGTH


@pytest.mark.slow
def test_a_line_of_50_mb(corpus, tmp_path):
    """A document, a sentence and a line of 50 MB: cut into rows, nothing of it lost."""
    path = tmp_path / "a.txt"
    with path.open("w") as file:
        for start in range(0, 7_000_000, 1000):
            file.write("    ".join(f"w{n % 1000}" for n in range(start, start + 1000)) + "    ")
        file.write("\n\nw1 w2.\nw3.\n")
    assert path.stat().st_size > 50e6
    card = make(
        corpus, str(path), tmp_path / "data", objective="mlm", dupe_factor=1, eval_fraction=0,
        max_length=512, masking="dynamic", shard_bytes=2 << 20,
    )  # fmt: skip
    train = card.splits["train"]
    assert train.counters["documents"] == 2
    assert train.tokens - 2 * train.instances == train.counters["tokens_of_text"] == 7_000_005
    assert train.tokens / train.instances > 480
