"""Tags of given words are those of the text that joins them, for every algorithm and folder."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import load_task
from keras_bert.inference.predict import predict
from keras_bert.tasks.span_classification.span_classifier import SpanClassifier
from keras_bert.tasks.tagging.signatures import tagger_signatures
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.text import Tokenizer
from tests.eagerly import eagerly
from tests.inputs.test_words_and_text import PLAIN, SENTENCES, WORDS, vocabulary
from tests.messages import raises_input_error
from tests.small_model import make_encoder

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def tagger(algorithm, *, prefix_space=False, **settings):
    tokenizer = Tokenizer(vocabulary(algorithm, prefix_space), lowercase=False)
    encoder = make_encoder(tokenizer, pooler=False, max_position_embeddings=128)
    return Tagger(encoder, tokenizer, labels=LABELS, max_length=128, **settings)


def tags_of(task, rows):
    """The tags of each row's words by the character at which they begin."""
    with eagerly():
        predictions = list(predict(model=task, data=rows))
    return [dict(zip(p["starts"], p["tags"], strict=True)) for p in predictions]


def tags_of_signature(task):
    signatures = tagger_signatures(task, max_length=128)
    outputs = signatures["serving_default"].function(text=tf.constant(SENTENCES))
    lengths = outputs["lengths"].numpy()
    rows = zip(lengths, outputs["starts"].numpy(), outputs["tags"].numpy(), strict=True)
    return [
        {start: tag.decode() for start, tag in zip(starts[:n].tolist(), tags[:n], strict=True)}
        for n, starts, tags in rows
    ]


@pytest.mark.parametrize("aggregation", ["first", "last", "mean", "product"])
@pytest.mark.parametrize("algorithm", ["byte-level-bpe", "unigram"])
def test_tags_of_words_are_those_of_their_text(algorithm, aggregation):
    task = tagger(algorithm, aggregation=aggregation)
    given = tags_of(task, [{"words": words} for words in PLAIN])
    assert given == tags_of(task, [" ".join(words) for words in PLAIN])
    assert len({tag for tags in given for tag in tags.values()}) > 1


@pytest.mark.parametrize("algorithm", ["byte-level-bpe", "unigram"])
def test_signatures_tag_as_predictions_do(algorithm):
    task = tagger(algorithm, aggregation="mean")
    assert tags_of_signature(task) == tags_of(task, SENTENCES)
    inputs = task.tokenizer(SENTENCES)
    outputs = tagger_signatures(task, max_length=128)["ids"].function(
        **{name: tf.constant(x) for name, x in inputs.items()}
    )
    [first_tags] = outputs["tags"].numpy()[:1]
    assert [tag.decode() for tag in first_tags if tag] == list(
        tags_of(task, SENTENCES[:1])[0].values()
    )


@pytest.mark.parametrize("label_subwords", ["first", "last", "all"])
def test_training_does_not_label_the_space_before_a_word(label_subwords):
    task = tagger("unigram", label_subwords=label_subwords)
    rows = [{"words": words, "tags": ["O"] * len(words)} for words in PLAIN]
    sequences = task.features(list(task.read(rows)), labelled=True)
    weights = [np.array(row)[1:-1] for row in sequences.weights["logits"].to_list()]
    blanks = [task.tokenizer.vocabulary.is_blank[ids] for ids in sequences.segments[0].to_list()]
    assert sum(map(sum, blanks)) > 5
    assert not any(row[blank].any() for row, blank in zip(weights, blanks, strict=True))
    if label_subwords == "all":
        assert all(row[~blank].all() for row, blank in zip(weights, blanks, strict=True))
    else:
        assert [sum(row) for row in weights] == list(map(len, PLAIN))


def edited(folder, **changes):
    """Changes the object of this library in config.json; None removes a key."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    stored = {**config["keras_bert"], **changes}
    config["keras_bert"] = {name: value for name, value in stored.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def test_a_folder_keeps_how_it_reads_words(tmp_path):
    task = tagger("byte-level-bpe")
    task.save(tmp_path / "new")
    again = load_task(tmp_path / "new")
    assert again.tokenizer.skips_spaces and not again.tokenizer.vocabulary.prefix_space
    task.save(tmp_path / "task.keras")
    assert Tagger.from_config(task.get_config()).skips_spaces
    # As an earlier version trained it: a space before every word, which was its first token.
    task.save(tmp_path / "earlier")
    edited(tmp_path / "earlier", skips_spaces=None)
    with pytest.warns(InputWarning, match="by an earlier version of keras-bert, which read"):
        earlier = load_task(tmp_path / "earlier")
    assert not earlier.tokenizer.skips_spaces and earlier.tokenizer.vocabulary.prefix_space
    rows = [{"words": words} for words in WORDS]
    earlier_tags = tags_of(earlier, rows)
    assert earlier_tags != tags_of(again, rows)
    earlier.save(tmp_path / "saved")
    assert tags_of(load_task(tmp_path / "saved"), rows) == earlier_tags
    # Another program's has neither key, and its texts are as its tokenizer reads them.
    config = json.loads((tmp_path / "new" / "config.json").read_text(encoding="utf-8"))
    del config["keras_bert"]
    (tmp_path / "new" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    other = load_task(tmp_path / "new")
    assert not other.tokenizer.skips_spaces and not other.tokenizer.vocabulary.prefix_space


def test_an_invalid_key_is_an_error(tmp_path):
    tagger("unigram").save(tmp_path / "folder")
    edited(tmp_path / "folder", skips_spaces="yes")
    with raises_input_error("`skips_spaces` should be true or false"):
        load_task(tmp_path / "folder")


@pytest.mark.parametrize("algorithm", ["byte-level-bpe", "unigram"])
def test_spans_read_the_same_words(algorithm):
    tokenizer = Tokenizer(vocabulary(algorithm, False), lowercase=False)
    encoder = make_encoder(tokenizer, pooler=False, max_position_embeddings=128)
    task = SpanClassifier(encoder, tokenizer, labels=["X"], max_length=128)
    given, text_features = (
        task.features(list(task.read(rows, labelled=False)), labelled=False)
        for rows in ([{"words": words} for words in PLAIN], [" ".join(words) for words in PLAIN])
    )
    assert given.segments[0].to_list() == text_features.segments[0].to_list()
    for name in ("word_starts", "word_ends"):
        assert given.columns[name].to_list() == text_features.columns[name].to_list()
