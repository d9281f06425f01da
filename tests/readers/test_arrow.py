"""Parquet, folders that `datasets` saved, and the JSON Lines of SNLI and MNLI."""

import json

import datasets
import pandas
import pytest

from keras_bert.base.errors import InputError
from keras_bert.cli.task_types import first_arguments, has_data_folder
from keras_bert.readers.choices import ChoiceSource
from keras_bert.readers.labels import several_labels
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.spans import SpanPairSource, SpanSource
from keras_bert.readers.squad import QuestionSource
from keras_bert.readers.texts import PAIR, TextSource
from tests.messages import raises_input_error

LABEL = datasets.ClassLabel(names=["entailment", "neutral"])
TEXT = datasets.Value("string")
PAIRS = {
    "premise": ["A dog.", "A cat.", "A fish."],
    "hypothesis": ["An animal.", "A pet.", "A bird."],
    "label": [0, -1, 1],  # -1: the annotators did not agree, as in SNLI
}
EXAMPLES = [("A dog.", "An animal.", "entailment"), ("A fish.", "A bird.", "neutral")]


@pytest.fixture(scope="module", autouse=True)
def _quiet():
    datasets.disable_progress_bars()


def saved(data, features, path, *, how, **options):
    """The path of a table in a format: a folder of the library, or Parquet."""
    data = datasets.Dataset.from_dict(data, features=datasets.Features(features))
    if how == "memory":
        return data
    if how == "folder":
        data.save_to_disk(path, **options)
    else:
        path = path.with_suffix(".parquet")
        data.to_parquet(path)
    return path


FORMATS = ("folder", "parquet", "memory")
FEATURES = {"premise": TEXT, "hypothesis": TEXT, "label": LABEL}


@pytest.mark.parametrize("how", FORMATS)
def test_pairs_have_their_labels_names(how, tmp_path):
    path = saved(PAIRS, FEATURES, tmp_path / "pairs", how=how)
    source = TextSource(path, texts=PAIR)
    assert [(*e.texts, e.label) for e in source] == EXAMPLES
    assert [e.line for e in source] == [1, 3] or how != "memory"
    (note,) = source.notes()
    assert note == (
        f"{source.name}, row 2: 1 row without a gold label, left out (the annotators did not agree "
        "on one)."
    )
    if how != "memory":
        format_name = {"folder": "a saved dataset", "parquet": "Parquet"}[how]
        assert source.description == (
            f'{path}: {format_name}, texts in "premise" and "hypothesis", label in "label"'
        )
    unlabelled = TextSource(path, texts=PAIR, need_labels=False)
    assert [e.label for e in unlabelled] == ["entailment", None, "neutral"]


def test_rows_of_all_files_of_a_folder_are_read_in_order(tmp_path):
    data = {"text": [f"text {n}" for n in range(3000)], "label": [n % 2 for n in range(3000)]}
    for how, options in (("folder", {"num_shards": 3}), ("parquet", {})):
        path = saved(data, {"text": TEXT, "label": LABEL}, tmp_path / how, how=how, **options)
        examples = list(TextSource(path))
        assert [e.text for e in examples] == data["text"]
        assert [e.line for e in examples] == list(range(1, 3001))
        assert examples[1].label == "neutral"


def test_parquet_of_another_program(tmp_path):
    path = tmp_path / "texts.parquet"
    table = pandas.DataFrame({"body": ["one", "two"], "topic": ["a", "b"], "score": [1.5, None]})
    table["kind"] = pandas.Categorical(["x", "y"])
    table.to_parquet(path)
    source = TextSource(path, fields="text=body,label=topic")
    assert [(e.text, e.label) for e in source] == [("one", "a"), ("two", "b")]
    assert [e.label for e in TextSource(path, fields="text=body,label=kind")] == ["x", "y"]
    several = TextSource(path, fields="text=body,label=topic", form=several_labels)
    assert [e.label for e in several] == [("a",), ("b",)]
    for data in (path, table):  # a usual name, and what pandas declares
        with raises_input_error('several columns have a usual name for the label..."topic"...kind'):
            TextSource(data)
        assert TextSource(data, text_column="body", label_column="kind").columns.label == ("kind",)
    table = table.drop(columns="topic")
    table.to_parquet(path)
    for data in (path, table):
        assert TextSource(data).columns.label == ("kind",)
    table["score"] = ["1", None]  # an empty cell is not the mark of a class label
    table.to_parquet(path)
    gap = TextSource(path, fields="text=body,label=score")
    assert [e.label for e in gap] == ["1"]
    assert gap.notes() == [f"{path}, row 2: 1 row without a label, left out."]


@pytest.mark.parametrize("how", ("folder", "parquet"))
def test_every_other_task_reads_them(how, tmp_path):
    tags = datasets.List(datasets.ClassLabel(names=["O", "B-PER"]))
    data = {"tokens": [["Ada", "wrote"]], "ner_tags": [[1, 0]]}
    path = saved(data, {"tokens": datasets.List(TEXT), "ner_tags": tags}, tmp_path / "a", how=how)
    (sentence,) = TaggedSource(path)
    assert (sentence.words, sentence.tags) == (("Ada", "wrote"), ("B-PER", "O"))
    (spanned,) = SpanSource(path)
    assert [(s.start, s.end, s.label) for s in spanned.spans] == [(0, 1, "PER")]
    data = {
        "question": ["Who?"],
        "context": ["It was Ada."],
        "answers": [{"text": ["Ada"], "answer_start": [7]}],
    }
    path = tmp_path / "questions"
    table = datasets.Dataset.from_dict(data)
    table.save_to_disk(path) if how == "folder" else table.to_parquet(path)
    (question,) = QuestionSource(path)
    assert (question.question, question.located[:2]) == ("Who?", ("Ada", 7))
    path = tmp_path / "choices"
    table = datasets.Dataset.from_dict({"context": ["a"], "choices": [["b", "c"]], "label": [1]})
    table.save_to_disk(path) if how == "folder" else table.to_parquet(path)
    (choices,) = ChoiceSource(path)
    assert (choices.choices, choices.label) == (("b", "c"), 1)
    path = tmp_path / "relations"
    pair = {
        "words": [["Ada", "knew", "Bob"]],
        "head": [[0, 1]],
        "tail": [[2, 3]],
        "label": ["knew"],
    }
    table = datasets.Dataset.from_dict(pair)
    table.save_to_disk(path) if how == "folder" else table.to_parquet(path)
    (relation,) = SpanPairSource(path)
    assert (relation.head[:2], relation.label) == ((0, 1), "knew")


def test_bad_tables(tmp_path):
    data = datasets.Dataset.from_dict(PAIRS, features=datasets.Features(FEATURES))
    folder = tmp_path / "splits"
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(folder)
    splits = f"{folder} has several splits. Give one of them: {folder}/train, {folder}/test."
    with pytest.raises(InputError) as error:
        TextSource(folder)
    assert str(error.value) == splits
    assert len(list(TextSource(folder / "train", texts=PAIR))) == 2
    (file,) = (folder / "train").glob("*.arrow")
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    with raises_input_error("Could not read ...arrow as a file of Arrow: "):
        TextSource(folder / "train", texts=PAIR)
    file.unlink()
    with raises_input_error("Could not read ...arrow as a file of Arrow: ...No such"):
        TextSource(folder / "train", texts=PAIR)
    (folder / "test" / "state.json").write_text("{}")
    with raises_input_error("test/state.json lists no files. Save the dataset again"):
        TextSource(folder / "test", texts=PAIR)
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and nothing else")
    with raises_input_error("Could not read ...damaged.parquet as a Parquet file: "):
        TextSource(tmp_path / "damaged.parquet")
    with raises_input_error("none.parquet does not exist. Give the path of a Parquet file."):
        TextSource(tmp_path / "none.parquet")
    empty = saved({"text": [], "label": []}, {"text": TEXT, "label": LABEL}, tmp_path / "e", how="")
    with raises_input_error("e.parquet has no rows"):
        TextSource(empty)
    undecided = {**PAIRS, "label": [-1] * 3}
    path = saved(undecided, FEATURES, tmp_path / "undecided", how="folder")
    with raises_input_error('has no gold label in "label" of any record'):
        list(TextSource(path, texts=PAIR))
    assert has_data_folder(first_arguments(["evaluate", "--data", str(tmp_path)]))
    assert not has_data_folder(first_arguments(["evaluate", "--data", str(path)]))


# A line of SNLI 1.0 and of MultiNLI 1.0 has these keys.
def nli(gold, a, b):
    return {
        "annotator_labels": ["neutral", "entailment"],
        "captionID": "1.jpg#0",
        "gold_label": gold,
        "pairID": "1n",
        "sentence1": a,
        "sentence1_binary_parse": "( A dog )",
        "sentence1_parse": "(ROOT (NP A dog))",
        "sentence2": b,
        "sentence2_binary_parse": "( A dog )",
        "sentence2_parse": "(ROOT (NP A dog))",
    }


NLI = [nli("entailment", "A dog.", "An animal."), nli("-", "A", "B"), nli("neutral", "C", "D")]


def test_snli_without_a_gold_label_is_left_out_and_counted(tmp_path):
    path = tmp_path / "snli_1.0_train.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in NLI))
    source = TextSource(path, texts=PAIR)
    assert [(e.line, *e.texts, e.label) for e in source] == [
        (1, "A dog.", "An animal.", "entailment"),
        (3, "C", "D", "neutral"),
    ]
    assert source.unlabelled == 1 and "line 2: 1 row without a gold label" in source.notes()[0]
    predicted = list(TextSource(path, texts=PAIR, need_labels=False))
    assert [e.label for e in predicted] == ["entailment", None, "neutral"]
    # The same as tab-separated columns, and in memory.
    table = pandas.DataFrame(NLI).drop(columns="annotator_labels")
    table.to_csv(tmp_path / "snli.tsv", sep="\t", index=False)
    for data in (tmp_path / "snli.tsv", table, NLI):
        assert [e.text for e in TextSource(data, texts=PAIR)] == ["A dog.", "C"]
    # Elsewhere "-" is a label.
    (tmp_path / "signs.tsv").write_text("text\tlabel\na\t+\nb\t-\n")
    assert [e.label for e in TextSource(tmp_path / "signs.tsv")] == ["+", "-"]
    path.write_text("".join(f"{json.dumps({**line, 'gold_label': '-'})}\n" for line in NLI))
    with raises_input_error('has no gold label in "gold_label" of any record'):
        list(TextSource(path, texts=PAIR))
