"""Prepared tfds splits as labelled files: made here as tfds makes them, read without it."""

import json

import pytest
import tensorflow as tf

from keras_bert.readers.choices import ChoiceSource
from keras_bert.readers.labels import score
from keras_bert.readers.spans import SpanPairSource
from keras_bert.readers.tables import open_table
from keras_bert.readers.texts import PAIR, TextSource
from tests.messages import raises_input_error

_FEATURES = "tensorflow_datasets.core.features"
TEXT = {"pythonClassName": f"{_FEATURES}.text_feature.Text", "text": {}}
LABEL = {
    "pythonClassName": f"{_FEATURES}.class_label_feature.ClassLabel",
    "classLabel": {"numClasses": "2"},
}
NUMBER = {
    "pythonClassName": f"{_FEATURES}.scalar.Scalar",
    "tensor": {"dtype": "int32", "encoding": "none", "shape": {}},
}


def several(feature):
    return {
        "pythonClassName": f"{_FEATURES}.sequence_feature.Sequence",
        "sequence": {"feature": feature, "length": "-1"},
    }


def prepare(root, name, features, rows, labels=None, version="1.0.0", split="train"):
    """The folder that tfds leaves: features.json, dataset_info.json, labels, two shards."""
    folder = root / name / version
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }
    (folder / "features.json").write_text(json.dumps(content))
    dataset = name.split("/")[0]
    half = len(rows) // 2
    parts = (rows[:half], rows[half:])
    split_info = {
        "name": split,
        "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        "shardLengths": [str(len(part)) for part in parts],
    }
    info = {"name": dataset, "fileFormat": "tfrecord", "splits": [split_info]}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    for feature, names in (labels or {}).items():
        (folder / f"{feature}.labels.txt").write_text("\n".join(names) + "\n")
    for number, part in enumerate(parts):
        path = folder / f"{dataset}-{split}.tfrecord-{number:05d}-of-00002"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in part:
                writer.write(_example(row).SerializeToString())
    return folder


def _example(row):
    features = {}
    for name, value in row.items():
        items = value if isinstance(value, list) else [value]
        if items and isinstance(items[0], float):
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=items))
        elif items and isinstance(items[0], str):
            coded = [text.encode() for text in items]
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=coded))
        else:
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=items))
    return tf.train.Example(features=tf.train.Features(feature=features))


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    return tmp_path


def test_single_texts_by_the_names_of_their_features(root):
    rows = [{"idx": i, "sentence": f"text {i}", "label": (0, 1, -1)[i % 3]} for i in range(6)]
    features = {"idx": NUMBER, "sentence": TEXT, "label": LABEL}
    names = {"label": ["negative", "positive"]}
    prepare(root, "glue/sst2", features, rows, names, split="validation")
    source = TextSource("tfds:glue/sst2:validation", need_labels=False)
    assert [(e.line, e.text, e.label) for e in source] == [
        (1, "text 0", "negative"),
        (2, "text 1", "positive"),
        (3, "text 2", None),
        (4, "text 3", "negative"),
        (5, "text 4", "positive"),
        (6, "text 5", None),
    ]
    assert source.description == (
        'tfds:glue/sst2:validation: a prepared tfds split, text in "sentence", label in "label"'
    )
    labelled = TextSource("tfds:glue/sst2:validation")
    assert [e.line for e in labelled] == [1, 2, 4, 5] and labelled.unlabelled == 2
    prepare(
        root, "glue/sst2", features, [{**row, "label": -1} for row in rows], names, split="test"
    )
    with raises_input_error('sst2:test has no gold label in "label" of any record'):
        list(TextSource("tfds:glue/sst2:test"))


def test_pairs_scores_and_other_names_through_fields(root):
    features = {"sentence1": TEXT, "sentence2": TEXT, "label": NUMBER}
    rows = [{"sentence1": "a", "sentence2": "b", "label": 2.5}] * 4
    prepare(root, "glue/stsb", features, rows)
    source = TextSource("tfds:glue/stsb:train", texts=PAIR, form=score)
    assert [(*e.texts, e.label) for e in source] == [("a", "b", 2.5)] * 4
    prepare(root, "reviews", {"body": TEXT, "stars": NUMBER}, [{"body": "x", "stars": 3}] * 2)
    source = TextSource("tfds:reviews:train", fields="text=body,label=stars")
    assert [(e.text, e.label) for e in source] == [("x", "3")] * 2
    source = TextSource("tfds:reviews:train")
    assert 'text in "body", label in "stars" (the only column left)' in source.description


def test_sequences_and_features_inside_others(root):
    inner = {"featuresDict": {"features": {"text": TEXT, "answer_start": NUMBER}}}
    features = {"tokens": several(TEXT), "tags": several(LABEL), "answers": several(inner)}
    row = {
        "tokens": ["a", "b"],
        "tags": [1, 0],
        "answers/text": ["b"],
        "answers/answer_start": [2],
    }
    prepare(root, "words", features, [row, {**row, "tokens": []}], {"tags": ["O", "B-PER"]})
    table = open_table("tfds:words:1.0.0:train", item="row", as_record=None)
    assert list(table) == [
        (1, {**row, "tags": ["B-PER", "O"]}),
        (2, {**row, "tags": ["B-PER", "O"], "tokens": []}),
    ]


def test_choices(root):
    features = {"question": TEXT, "options": several(TEXT), "answer": NUMBER}
    rows = [{"question": "q", "options": ["a", "b", "c"], "answer": 2}] * 2
    prepare(root, "quiz", features, rows)
    first, _ = ChoiceSource("tfds:quiz:train")
    assert (first.context, first.choices, first.label) == ("q", ("a", "b", "c"), 2)


def test_pairs_of_spans_by_their_names_and_by_fields(root):
    place = {"featuresDict": {"features": {"start": NUMBER, "end": NUMBER}}}
    features = {"tokens": several(TEXT), "subject": several(NUMBER), "object": place}
    row = {
        "tokens": ["ada", "in", "rome"],
        "subject": [0, 1],
        "object/start": 2,
        "object/end": 3,
        "relation": 1,
    }
    prepare(root, "who", {**features, "relation": LABEL}, [row] * 2, {"relation": ["no", "in"]})
    fields = "words=tokens,head=subject,tail=object/start|object/end,label=relation"
    source = SpanPairSource("tfds:who:train", fields=fields)
    first, _ = source
    assert (first.words, first.label) == (("ada", "in", "rome"), "in")
    assert (first.head[:2], first.tail[:2]) == ((0, 1), (2, 3))
    assert source.description == "tfds:who:train: a prepared tfds split, pairs of spans"
    for told, message in (
        ("words=text", 'record 1: no "text" (from `fields`) among the features (tokens, subj'),
        (None, 'record 1: no "words" and no "text" among the keys'),
        ("verb=label", '`fields` names "verb". It should be words, text, head, tail, label'),
    ):
        with raises_input_error(message):
            list(SpanPairSource("tfds:who:train", fields=told))
    named = {"words": several(TEXT), "head": several(NUMBER), "tail": several(NUMBER)}
    row = {"words": ["ada", "in", "rome"], "head": [2, 3], "tail": [0, 1], "label": 0}
    prepare(root, "named", {**named, "label": LABEL}, [row] * 2, {"label": ["of", "in"]})
    assert [pair.label for pair in SpanPairSource("tfds:named:train")] == ["of", "of"]


def test_bad_input(root):
    rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}]
    features = {"text": TEXT, "label": LABEL}
    for version in ("1.9.0", "1.10.0"):
        folder = prepare(root, "spam", features, rows, {"label": ["ham", "spam"]}, version)
    (shard,) = folder.glob("*00001-of*")
    for name, message in (
        ("tfds:spam", "Expected tfds:NAME/CONFIG:SPLIT"),
        ("tfds:none:train", "tfds:none:train is not prepared"),
        ("tfds:spam:dev", "1.10.0 has no split dev. Choose from: train"),
    ):
        with raises_input_error(message):
            TextSource(name)
    shard.write_bytes(shard.read_bytes()[:-3])
    with raises_input_error("tfds:spam:train is damaged after record 1: truncated record"):
        list(TextSource("tfds:spam:train"))
    shard.unlink()
    with raises_input_error("is missing. Prepare the dataset"):
        TextSource("tfds:spam:train")
