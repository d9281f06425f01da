"""`inspect` shows the rows that a job made, and a check of all of them finds what is wrong."""

import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from data_gen.pretraining_data import pretraining_data
from keras_bert.cli.main import main
from keras_bert.records import DataFolder
from keras_bert.records.inspection import read_instances, verify
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.messages import raises_input_error
from tests.seeds import shifted
from tests.undrawn import undrawn

LENGTH = 48


@pytest.fixture(scope="module", autouse=True)
def _no_pictures():
    """Drawing the card takes a third of such a small job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("data_gen.pretraining_data.draw_card", lambda *arguments: False)
        yield


def make(corpus, files, output, **kwargs):
    settings = {"max_length": LENGTH, "max_predictions": 8, "dupe_factor": 1} | kwargs
    with undrawn():
        pretraining_data(
            input=files, vocab=corpus.vocabulary, output=output, input_format="lines",
            beam_options=["--direct_num_workers=1"], **settings,
        )  # fmt: skip
    return DataFolder.open(output)


SETTINGS = {
    "pairs": {},
    "padded": {"pad": True},
    "orders": {"objective": "mlm-sop"},
    "single tokens": {"objective": "mlm"},
    "whole words": {"mask_unit": "whole-word", "objective": "mlm"},
    "spans": {"objective": "span"},
    "padded spans": {"objective": "span", "pad": True},
    "dynamic": {"masking": "dynamic"},
}


@pytest.fixture(scope="module")
def folders(corpus, corpus_files, tmp_path_factory):
    root = tmp_path_factory.mktemp("folders")
    return {
        name: make(corpus, corpus_files, root / name, **settings)
        for name, settings in SETTINGS.items()
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_job_writes_obeys_every_law(folders, name):
    counts = verify(folders[name])
    assert counts["train"]["rows"] == folders[name].card.splits["train"].instances > 100
    assert (counts["train"]["predictions"] > 0) == (name != "dynamic")


def columns_of(folder):
    """The columns of the only train shard, as `FeatureSpec.encode` takes them."""
    [shard] = folder.shards("train")
    parsed = folder.spec.parse(list(tf.data.TFRecordDataset(shard)))
    return {
        name: (value.values.numpy(), value.row_lengths().numpy())
        if isinstance(value, tf.RaggedTensor)
        else value.numpy()
        for name, value in parsed.items()
    }, shard


def at(columns, name, row, offset):
    """The place of a row's value in the flat values of a column."""
    flat, lengths = columns[name]
    return flat, int(lengths[:row].sum()) + offset


def spoil(columns, offence, vocabulary):
    """Breaks one law in row 7 (which has at least two predictions)."""
    row = 7
    ids, start = at(columns, "input_ids", row, 0)
    end = start + int(columns["input_ids"][1][row]) - 1
    if offence == "first":
        ids[start] = 9
    elif offence == "last":
        ids[end] = 9
    elif offence == "special inside":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        ids[start + positions[place]] = vocabulary.sep_id
    elif offence == "id":
        ids[start + 2] = len(vocabulary)
    elif offence == "label":
        columns["next_sentence_labels"][row] = 2
    elif offence == "segments":
        columns["segment_lengths"][row, 0] -= 1
    elif offence == "empty segment":
        columns["segment_lengths"][row] = [2, end - start - 1]
    elif offence == "order":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        positions[[place, place + 1]] = positions[[place + 1, place]]
    elif offence == "twice":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        positions[place + 1] = positions[place]
    elif offence == "outside":
        positions, place = at(columns, "masked_lm_positions", row + 1, -1)
        positions[place] = end - start + 1
    elif offence == "masked [SEP]":
        positions, place = at(columns, "masked_lm_positions", row + 1, -1)
        positions[place] = end - start
    elif offence == "masked special":
        flat, place = at(columns, "masked_lm_ids", row, 0)
        flat[place] = vocabulary.unk_id
    elif offence == "stray mask":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        free = next(p for p in range(1, 40) if p not in positions[place : place + 8])
        ids[start + free] = vocabulary.mask_id
    return columns


@pytest.mark.parametrize(
    "offence, message",
    [
        ("first", "does not begin with"),
        ("last", "does not end with"),
        ("special inside", "special token is inside"),
        ("id", "an id is not in"),
        ("label", "label is not 0 or 1"),
        ("segments", "do not sum"),
        ("empty segment", "a segment is empty"),
        ("order", "not in ascending order"),
        ("twice", "not in ascending order"),
        ("outside", "is outside it"),
        ("masked [SEP]", "special token is masked"),
        ("masked special", "masked token is a special one"),
        ("stray mask", "that is not to be predicted"),
    ],
)
def test_each_offence_is_found_with_its_record(corpus, folders, offence, message):
    folder = folders["pairs"]
    columns, shard = columns_of(folder)
    before = open(shard, "rb").read()
    try:
        with tf.io.TFRecordWriter(shard) as writer:
            for record in folder.spec.encode(spoil(columns, offence, corpus.vocabulary)):
                writer.write(record)
        with raises_input_error(f"00001, record 7: ...{message}"):
            verify(folder)
    finally:
        open(shard, "wb").write(before)


def examples_of(folder):
    """The rows of the only train shard as dicts of lists, and its path."""
    columns, shard = columns_of(folder)
    lists = {
        name: [part.tolist() for part in np.split(column[0], np.cumsum(column[1])[:-1])]
        if isinstance(column, tuple)
        else column.tolist()
        for name, column in columns.items()
    }
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)], shard


def write_examples(folder, rows, shard):
    columns = {
        name: np.array([row[name] for row in rows])
        if length is not None
        else (
            np.array([value for row in rows for value in row[name]]),
            np.array([len(row[name]) for row in rows]),
        )
        for name, length in folder.spec.lengths.items()
    }
    with tf.io.TFRecordWriter(shard) as writer:
        for record in folder.spec.encode(columns):
            writer.write(record)


def drop_prediction(row, number):
    """Takes a prediction out of a compact row, and puts the token back."""
    row["input_ids"][row["masked_lm_positions"][number]] = row["masked_lm_ids"][number]
    for name in [name for name in row if name.startswith(("masked_lm_", "span_"))]:
        del row[name][number]


def spans_of(row):
    """(number of the first prediction, size) of each span."""
    firsts = [n for n, offset in enumerate(row["span_offset"]) if offset == 1]
    return zip(firsts, np.diff([*firsts, len(row["span_offset"])]).tolist(), strict=True)


def a_span(row, size, vocabulary):
    """The first prediction of a span of `size` or more tokens that are [MASK], or None."""
    for first, length in spans_of(row):
        if length >= size:
            if row["input_ids"][row["masked_lm_positions"][first]] == vocabulary.mask_id:
                return first
    return None


def one_long_span(row, vocabulary):
    """Makes the predictions of a row one span of eleven words."""
    ids = row["input_ids"]
    for position, token in zip(row["masked_lm_positions"], row["masked_lm_ids"], strict=True):
        ids[position] = token
    positions = list(range(5, 16))
    row |= {
        "masked_lm_positions": positions,
        "masked_lm_ids": [ids[p] for p in positions],
        "span_left": [4] * 11,
        "span_right": [16] * 11,
        "span_offset": list(range(1, 12)),
    }
    ids[5:16] = [vocabulary.mask_id] * 11


def split_span(row, first):
    """Tells the second half of a span as a span of its own."""
    edge = row["masked_lm_positions"][first]
    for number, (left, position) in enumerate(
        zip(list(row["span_left"]), row["masked_lm_positions"], strict=True)
    ):
        if left == row["span_left"][first] and position > edge:
            row["span_left"][number] = edge
            row["span_offset"][number] = position - edge


# What is broken: (folder, size of the span that is needed, how, what is said).
SPAN_OFFENCES = {
    "offset": (
        1,
        lambda row, n, v: row["span_offset"].__setitem__(n, 3),
        "offset is not the offset in",
    ),
    "end": (
        1,
        lambda row, n, v: row["span_right"].__setitem__(n, row["masked_lm_positions"][n]),
        "a token is outside its span",
    ),
    "beyond": (1, lambda row, n, v: row["span_right"].__setitem__(n, 4000), "ends outside it"),
    "hole": (3, lambda row, n, v: drop_prediction(row, n + 1), "token inside a span is not masked"),
    "split": (2, lambda row, n, v: split_span(row, n), "a boundary of a span is masked"),
    "two fates": (
        2,
        lambda row, n, v: row["input_ids"].__setitem__(
            row["masked_lm_positions"][n], row["masked_lm_ids"][n]
        ),
        "only a part of a span is [MASK]",
    ),
    "long": (1, lambda row, n, v: one_long_span(row, v), "a span has more than 10 words"),
}


@pytest.fixture(scope="module")
def long_spans(corpus, corpus_files, tmp_path_factory):
    output = tmp_path_factory.mktemp("long") / "data"
    return make(corpus, corpus_files, output, objective="span", max_length=128, max_predictions=20)


@pytest.mark.parametrize("offence", SPAN_OFFENCES)
def test_each_offence_of_spans_is_found_with_its_record(corpus, long_spans, offence):
    size, spoil_row, message = SPAN_OFFENCES[offence]
    rows, shard = examples_of(long_spans)
    before = open(shard, "rb").read()
    number, first = next(
        (number, first)
        for number, row in enumerate(rows)
        if len(row["input_ids"]) > 110
        and (first := a_span(row, size, corpus.vocabulary)) is not None
    )
    spoil_row(rows[number], first, corpus.vocabulary)
    try:
        write_examples(long_spans, rows, shard)
        with raises_input_error(f"00001, record {number}: ...{message}"):
            verify(long_spans)
    finally:
        open(shard, "wb").write(before)


def test_fewer_predictions_than_are_due_are_found(folders):
    folder = folders["single tokens"]
    rows, shard = examples_of(folder)
    before = open(shard, "rb").read()
    drop_prediction(rows[7], 0)
    try:
        write_examples(folder, rows, shard)
        with raises_input_error("record 7: it has fewer predictions than the masking rate"):
            verify(folder)
    finally:
        open(shard, "wb").write(before)


@pytest.mark.parametrize(
    "name, place, value",
    [("input_mask", 3, 0), ("segment_ids", 0, 1), ("masked_lm_weights", 0, 0.0)],
)
def test_offences_of_padding_are_found(folders, name, place, value):
    folder = folders["padded"]
    rows, shard = examples_of(folder)
    before = open(shard, "rb").read()
    rows[7][name][place] = value
    try:
        write_examples(folder, rows, shard)
        with raises_input_error(f"record 7: its {name} are not one run of 1"):
            verify(folder)
    finally:
        open(shard, "wb").write(before)


LETTERS = WordPieceVocabulary([*SPECIAL_TOKENS, *"ab", "##a", "##b", "##ab", "##bb"])


@pytest.mark.parametrize("objective", ["mlm", "span"])
def test_whole_words_are_masked_whole_from_text_to_rows(tmp_path, objective):
    """Words of several pieces, made by the job; a word that is masked in part is found."""
    rng = random.Random(shifted(0))
    words = ["".join(rng.choices("ab", k=rng.randint(1, 6))) for _ in range(6000)]
    lines = [" ".join(words[start : start + 12]) for start in range(0, len(words), 12)]
    text = "\n\n".join("\n".join(lines[start : start + 9]) for start in range(0, len(lines), 9))
    (tmp_path / "a.txt").write_text(text)
    unit = None if objective == "span" else "whole-word"
    folder = make(
        SimpleNamespace(vocabulary=LETTERS), str(tmp_path / "a.txt"), tmp_path / "data",
        objective=objective, mask_unit=unit, max_predictions=20,
    )  # fmt: skip
    verify(folder)
    rows, shard = examples_of(folder)
    number, first = next(
        (number, n)
        for number, row in enumerate(rows)
        for n, (one, token) in enumerate(
            zip(row["masked_lm_positions"], row["masked_lm_ids"], strict=True)
        )
        if LETTERS.continuations[token] and one - 1 in row["masked_lm_positions"]
    )
    drop_prediction(rows[number], first)
    write_examples(folder, rows, shard)
    with raises_input_error(f"record {number}: a word is masked in part"):
        verify(folder)


def flipped(data):
    return data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]


@pytest.mark.parametrize(
    "damage, message",
    [
        (flipped, ", record ... cannot be read"),
        (lambda data: data[:-3], ", record ... cannot be read"),
        (lambda data: b"these are no records at all", ", record 0 cannot be read"),
        (
            lambda data: data[16 + int.from_bytes(data[:8], "little") :],
            " has ... examples, the dataset card",
        ),
    ],
)
def test_a_damaged_file_is_found(folders, damage, message):
    folder = folders["pairs"]
    [shard] = folder.shards("train")
    before = open(shard, "rb").read()
    try:
        open(shard, "wb").write(damage(before))
        with raises_input_error(shard + message):
            verify(folder)
    finally:
        open(shard, "wb").write(before)


def test_wrong_fractions_are_found(corpus, corpus_files, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.records.masking._MASKED", 0.7)
    folder = make(corpus, corpus_files, tmp_path / "data", dupe_factor=20)
    with raises_input_error("are masked. Expected 80 %"):
        verify(folder)


@pytest.mark.parametrize("name", SETTINGS)
def test_instances_are_what_the_rows_hold(corpus, folders, name):
    folder = folders[name]
    instances = list(read_instances(folder, folder.shards("train"), count=50))
    assert [instance.number for instance in instances] == list(range(50))
    predicted = 0
    for instance in instances:
        tokens = [token.original or token.text for token in instance.tokens]
        parts = " ".join(tokens).removeprefix("[CLS] ").removesuffix(" [SEP]").split(" [SEP] ")
        assert len(parts) == (2 if instance.is_next is not None else 1)
        for number, part in enumerate(parts):
            ids = [corpus.vocabulary.id(word) for word in part.split()]
            assert ids == list(range(ids[0], ids[0] + len(ids)))
            tokens_of_segment = [p for p in instance.tokens if p.segment == number]
            assert len(tokens_of_segment) == len(ids)
        predicted += sum(token.original is not None for token in instance.tokens)
        for before, token, after in zip(
            instance.tokens, instance.tokens[1:], instance.tokens[2:], strict=False
        ):
            assert (token.span > 0) == (token.original is not None and "span" in name)
            if token.span and before.span != token.span:
                assert before.boundary and not before.span
            if token.span and after.span != token.span:
                assert after.boundary and not after.span
    assert (predicted > 0) == (name != "dynamic")


def test_the_command(folders, capsys):
    path = folders["pairs"].path
    assert main(["inspect", path, "--count", "3"]) == 0
    out = capsys.readouterr().out
    assert out.count("[CLS]") == 3 and re.search(r"\[MASK\]\{w\d+\}", out)
    assert "is next" in out or "random" in out
    assert main(["inspect", folders["pairs"].shards("train")[0], "--count", "1"]) == 0
    assert capsys.readouterr().out.count("[CLS]") == 1
    assert main(["inspect", path, "--verify"]) == 0
    assert "All examples satisfy the invariants" in capsys.readouterr().out
    assert main(["inspect", path + "absent"]) == 2
    assert "no data folder" in capsys.readouterr().err


def test_the_next_command_is_one_that_takes_these_rows(folders, capsys):
    for name in ("pairs", "spans"):
        assert main(["inspect", folders[name].path, "--count", "1"]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.startswith("Next: keras-bert pretrain --data")


def test_a_folder_of_another_file_system(folders, capsys):
    path = folders["pairs"].path
    tf.io.gfile.makedirs("ram://of/pairs")
    for name in tf.io.gfile.listdir(path):
        if not tf.io.gfile.isdir(f"{path}/{name}"):
            tf.io.gfile.copy(f"{path}/{name}", f"ram://of/pairs/{name}")
    assert main(["inspect", "ram://of/pairs", "--count", "1"]) == 0
    assert "Next: keras-bert pretrain --data ram://of/pairs " in capsys.readouterr().out


def test_the_command_says_what_the_second_segment_is(folders, capsys):
    for name, labels in (("pairs", ("is next", "random")), ("orders", ("in order", "swapped"))):
        assert main(["inspect", folders[name].path, "--count", "30"]) == 0
        said = re.findall(r"^\d+  (.+)$", capsys.readouterr().out, re.MULTILINE)
        assert len(said) == 30 and set(said) == set(labels)
        assert main(["inspect", folders[name].path, "--verify"]) == 0
        out = capsys.readouterr().out
        train, _ = re.findall(rf"second segment {labels[1]} in ([\d.]+) %", out)
        assert 35 < float(train) < 65


def test_spans_are_seen_with_and_without_colours(folders, capsys, monkeypatch):
    folder = folders["spans"]
    [instance] = read_instances(folder, folder.shards("train"), count=1)
    arguments = ["inspect", folder.path, "--count", "1"]
    assert main(arguments) == 0
    plain = capsys.readouterr().out
    spans = re.findall(r"<([^>]+)>", plain)
    assert len(spans) == max(token.span for token in instance.tokens) > 0
    for number, span in enumerate(spans, 1):
        originals = re.findall(r"\{(\w+)\}", span)
        assert originals == [token.original for token in instance.tokens if token.span == number]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(arguments) == 0
    coloured = capsys.readouterr().out
    underlined = "".join(re.findall(r"\x1b\[[\d;]*4;?[\d;]*m([^\x1b]+)", coloured))
    for token in instance.tokens:
        assert not token.boundary or token.text in underlined
    assert re.sub(r"\x1b\[[\d;]*m|\s", "", coloured) == re.sub(r"\s", "", plain)


def test_an_offence_is_one_sentence_and_exit_code_2(folders, capsys):
    folder = folders["single tokens"]
    [shard] = folder.shards("train")
    before = open(shard, "rb").read()
    try:
        open(shard, "wb").write(before[:5000] + bytes([before[5000] ^ 1]) + before[5001:])
        assert main(["inspect", folder.path, "--verify"]) == 2
        printed = capsys.readouterr()
        assert re.fullmatch(r"keras-bert: .*-00001, record \d+ cannot be read: .*\n", printed.err)
        assert "All examples satisfy" not in printed.out and "Next" not in printed.out
    finally:
        open(shard, "wb").write(before)


def test_outcomes_add_up(folders):
    counts = verify(folders["pairs"])["train"]
    assert counts["masked"] + counts["kept"] + counts["replaced"] == counts["predictions"]
    assert np.isclose(counts["masked"] / counts["predictions"], 0.8, atol=0.1)
