"""Parquet files and prepared tfds datasets are read like text files; what is wrong is said."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

from data_gen.documents import blocks, find, read
from data_gen.settings import Reading, fraction_of_letters, fraction_of_repeated_lines
from data_gen.vocabulary import learn_vocabulary
from tests.messages import raises_input_error

TEXTS = [f"Document {n}.\nIt has two paragraphs." + " More." * n for n in range(50)]


def read_all(pattern, **reading):
    reading = Reading(**reading)
    all_blocks = [block for window in find(pattern) for block in blocks(window, reading=reading)]
    return all_blocks, [
        document for block in all_blocks for document in read(block, reading=reading)
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_parquet(tmp_path, kind):
    path = tmp_path / "no_ending"
    table = pa.table({"id": range(52), "text": pa.array([*TEXTS, None, "  "], kind)})
    pq.write_table(table, path, row_group_size=20)
    all_blocks, documents = read_all(str(path))
    assert [document.text for document in documents] == TEXTS
    assert [block.documents for block in all_blocks] == [20, 20, 10]
    assert dict(all_blocks[-1].counts) == {"empty_rows": 1}


def test_parquet_of_another_column(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": TEXTS, "n": range(50)}), path)
    assert len(read_all(str(path), text_field="body")[1]) == 50
    with raises_input_error("no column text. ...one of body, n"):
        read_all(str(path))
    with raises_input_error("column n of ... has the type int64"):
        read_all(str(path), text_field="n")


def test_damaged_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": TEXTS}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with raises_input_error("Could not read ...a.parquet as a Parquet file"):
        read_all(str(path))


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A dataset as tfds prepares it: two versions, two shards."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    for version, texts in (("1.0.0", TEXTS[:3]), ("1.10.0", TEXTS), ("1.9.0", TEXTS[:5])):
        folder = tmp_path / "stories" / "plain" / version
        folder.mkdir(parents=True)
        half = len(texts) // 2
        for index, part in enumerate((texts[:half], texts[half:])):
            name = f"stories-train.tfrecord-{index:05d}-of-00002"
            with tf.io.TFRecordWriter(str(folder / name)) as writer:
                for text in part:
                    bytes_list = tf.train.BytesList(value=[text.encode()])
                    feature = {"text": tf.train.Feature(bytes_list=bytes_list)}
                    example = tf.train.Example(features=tf.train.Features(feature=feature))
                    writer.write(example.SerializeToString())
        split = {"name": "train", "shardLengths": ["1", "1"], "numBytes": "1000"}
        split["filepathTemplate"] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
        info = {"name": "stories", "fileFormat": "tfrecord", "splits": [split]}
        (folder / "dataset_info.json").write_text(json.dumps(info))
    return tmp_path


def test_tfds(prepared):
    all_blocks, documents = read_all("tfds:stories/plain:train")
    assert [document.text for document in documents] == TEXTS
    assert [block.documents for block in all_blocks] == [25, 25]
    assert len(read_all("tfds:stories/plain:1.9.0:train")[1]) == 5


@pytest.mark.parametrize(
    "name, message",
    [
        ("tfds:stories", "Invalid dataset name tfds:stories"),
        ("tfds:tales/plain:train", "is not prepared: there is no ...tales/plain/VERSION"),
        ("tfds:stories/plain:2.0.0:train", "is not prepared"),
        ("tfds:stories/plain:test", "has no split test. Choose from: train"),
    ],
)
def test_a_dataset_that_is_not_there_is_one_sentence(prepared, name, message):
    with raises_input_error(message):
        find(name)


def test_a_feature_that_is_not_there(prepared):
    with raises_input_error("Could not read a text ... from the feature body"):
        read_all("tfds:stories/plain:train", text_field="body")


@pytest.mark.parametrize(
    "file, content, message",
    [
        ("stories-train.tfrecord-00001-of-00002", None, "00001-of-00002 is missing"),
        ("dataset_info.json", "{", "is not JSON"),
        ("dataset_info.json", '{"name": "s", "fileFormat": "riegeli"}', "is stored as riegeli"),
    ],
)
def test_wrong_tfds_folders(prepared, file, content, message):
    path = prepared / "stories" / "plain" / "1.10.0" / file
    path.unlink() if content is None else path.write_text(content)
    with raises_input_error(message):
        find("tfds:stories/plain:train")


def test_a_dataset_that_tfds_itself_has_prepared(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    class Tales(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.2.3")

        def _info(self):
            return self.dataset_info_from_configs(
                features=tfds.features.FeaturesDict({"text": tfds.features.Text()})
            )

        def _split_generators(self, manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            yield from ((n, {"text": text}) for n, text in enumerate(TEXTS))

    Tales(data_dir=str(tmp_path)).download_and_prepare()
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    documents = read_all("tfds:tales:train")[1]
    assert sorted(document.text for document in documents) == sorted(TEXTS)


def test_json_lines_of_another_field(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"body": text}) + "\n" for text in TEXTS))
    assert len(read_all(str(path), text_field="body")[1]) == 50
    with raises_input_error('line 1 has no text: ...{"text": "…"}'):
        read_all(str(path))


def test_heuristics():
    assert fraction_of_letters("ab c1 !?\n") == 3 / 6
    assert fraction_of_letters("日本 é 12") == 3 / 5
    assert fraction_of_letters(" ") == 0
    assert fraction_of_repeated_lines("a\nb\n\na\na") == 2 / 4
    assert fraction_of_repeated_lines("") == 0


def test_a_vocabulary_is_learned_from_any_source_and_field(tmp_path):
    sources = {"a.parquet": None, "a.jsonl": None, "a.txt": "\n\n".join(TEXTS)}
    pq.write_table(pa.table({"body": TEXTS, "text": ["other words"] * 50}), tmp_path / "a.parquet")
    sources["a.jsonl"] = "\n".join(json.dumps({"body": text, "text": "x"}) for text in TEXTS)
    learned = []
    for name, content in sources.items():
        if content is not None:
            (tmp_path / name).write_text(content)
        field = {} if name == "a.txt" else {"text_field": "body"}
        learned.append(
            learn_vocabulary(
                input=tmp_path / name, output=tmp_path / "vocab.txt", size=200, force=True, **field
            )
        )
    assert "document" in learned[0].vocabulary.tokens
    assert learned[0] == learned[1] == learned[2]
