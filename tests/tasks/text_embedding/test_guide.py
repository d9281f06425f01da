"""A guide that leaves false negatives out, its vectors computed once."""

import keras
import numpy as np
import pytest

import keras_bert as kb
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder
from tests.messages import raises_input_error
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

pytestmark = pytest.mark.usefixtures("eager")

WORDS = [f"w{number}" for number in range(12)]
TOKENIZER = make_tokenizer([*WORDS, "ask"])
ROWS = [
    {"anchor": f"{word} w0", "positive": f"{word} w1", "negative": f"w1 {word}" if n % 2 else None}
    for n, word in enumerate(WORDS[2:10])
]


def embedder(**settings):
    return TextEmbedder(make_encoder(TOKENIZER), TOKENIZER, max_length=12, **settings)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    embedder().save(folder / "model")
    encoder = make_encoder(TOKENIZER, hidden_size=12, seed=shifted(9))
    prompts = {"query": "ask "}
    TextEmbedder(encoder, TOKENIZER, max_length=12, prompts=prompts).save(folder / "guide")
    kb.Classifier(make_encoder(TOKENIZER), TOKENIZER, labels=["a", "b"]).save(folder / "other")
    return folder


def test_the_labels_are_the_vectors_of_the_guide_in_its_own_prompts(folders):
    guide = kb.load_task(folders / "guide")
    task = embedder(guide=folders / "guide")
    batches = task.dataset(ROWS, batch_size=3, epochs=1, shuffle=False)
    anchors, rest = [], []
    for _, labels in batches:
        vectors = labels["embedding"].numpy()
        anchors += [*vectors[:, 0]]
        rest += [*vectors[:, 1:]]
    np.testing.assert_allclose(
        anchors, guide.encode_query([row["anchor"] for row in ROWS]), atol=1e-5
    )
    for row, (positive, negative) in zip(ROWS, rest, strict=True):
        np.testing.assert_allclose(positive, guide.encode_document(row["positive"]), atol=1e-5)
        if row["negative"] is None:
            assert not negative.any()
        else:
            np.testing.assert_allclose(negative, guide.encode_document(row["negative"]), atol=1e-5)


def test_the_loss_of_fit_is_that_of_the_function(folders):
    task = embedder(guide=folders / "guide", guide_margin=0.1, matryoshka=[16, 8])
    (batch,) = task.dataset(ROWS, batch_size=8, epochs=1, shuffle=False)
    inputs, labels = batch
    task.compile_defaults("sgd")
    loss = task.test_on_batch(*batch)
    loss = loss[0] if isinstance(loss, list) else loss
    vectors = keras.ops.convert_to_tensor(task(inputs, training=False)["embedding"])
    expected = task.default_losses()["embedding"](labels["embedding"], vectors)
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    unguided = embedder(matryoshka=[16, 8]).default_losses()["embedding"]
    present = np.any(labels["embedding"].numpy() != 0, axis=-1).astype("float32")
    assert abs(float(unguided(present, vectors)) - float(expected)) > 1e-3


def test_a_run_encodes_each_text_once_and_resumes(folders, tmp_path, monkeypatch):
    encoded, encode = [], TextEmbedder.encode

    def counted(self, texts, **options):
        encoded.extend(texts)
        return encode(self, texts, **options)

    monkeypatch.setattr(TextEmbedder, "encode", counted)
    given = {
        **{"task": "text-embedding", "model": folders / "model", "train": ROWS, "epochs": 3},
        **{"dev": ROWS[:4], "batch_size": 4, "learning_rate": 1e-2, "seed": shifted(3)},
        **{"checkpoint_every": 1, "keep": "last", "guide": folders / "guide", "chunk_size": 3},
    }
    output, killed = tmp_path / "run", tmp_path / "killed"
    with copied(output, killed, after_step=3):
        kb.finetune(**given, output=output)
    texts = [text for row in ROWS for text in row.values() if text]
    dev_texts = [text for row in ROWS[:4] for text in row.values() if text]
    assert sorted(encoded) == sorted([*texts, *dev_texts])
    kb.finetune(**given, output=killed)
    assert_same_weights(killed, output)
    run = kb.load_task(output)
    assert run.settings.guide is None  # which a model does not need


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"guide_margin": 0.1}, "`guide_margin` is for a `guide`"),
        ({"guide_relative_margin": 0.1}, "`guide_relative_margin` is for a `guide`"),
        ({"guide": "guide", "symmetric": True}, "Leave `symmetric` out."),
        ({"guide": "guide", "loss": "triplet"}, "`guide` has no effect with `loss` triplet"),
        ({"guide": "other"}, "a model of the task classifier. Expected one with vectors"),
    ],
)
def test_what_no_guide_is_for(settings, message, folders, monkeypatch):
    monkeypatch.chdir(folders)
    with raises_input_error(message):
        embedder(**settings).dataset(ROWS, batch_size=4, epochs=1)
