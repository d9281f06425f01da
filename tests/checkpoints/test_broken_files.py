"""Whatever is in the files of a folder, there is an answer or an error of one line.

The files are those of every tokenizer, of adapters, of other programs' formats, and of
pre-training data.
`tests.mutations` changes each value of their JSON, and their bytes. Nothing is known of what a
change does.
"""

import contextlib
import functools
import json
import random
import resource
import traceback
import warnings
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.allennlp import save_allennlp
from keras_bert.checkpoints.convert import convert
from keras_bert.encoders.bilm import BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder
from keras_bert.inference.predict import predict
from keras_bert.records import DataFolder
from keras_bert.records.shard_reader import read_examples
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.classification.regressor import Regressor
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.text import Tokenizer
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.vocabulary import BERT_TOKENS
from tests.eagerly import eagerly
from tests.inputs.test_words_and_text import vocabulary
from tests.mutations import changes_of_file, put
from tests.pretraining_folder import make_data_folder
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.text.unigram_models import bert_model


def task_folder(task, folder, *, columns=("text",)):
    task.columns = {"text": list(columns)}
    task.save(folder)
    return folder


def folder_with_algorithm(algorithm, folder):
    tokenizer = Tokenizer(vocabulary(algorithm, algorithm == "unigram"), lowercase=False)
    encoder = make_encoder(tokenizer)
    tasks = {
        "bpe": lambda: Classifier(encoder, tokenizer, labels=["a", "b"]),
        "byte-level-bpe": lambda: Tagger(encoder, tokenizer, labels=["O", "B-X"], crf=True),
        "unigram": lambda: Regressor(encoder, tokenizer, one_text=True),
    }
    return task_folder(tasks[algorithm](), folder)


def wordpiece(folder):
    tokenizer = make_tokenizer(["the"])
    task = Classifier(make_encoder(tokenizer), tokenizer, labels=["a", "b"], layers="mix-all")
    task_folder(task, folder)
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "added_tokens.json").write_text('{"[PAD]": 0}')
    return folder


def sharded(folder):
    """A cross-encoder of another program, with an index, and SentencePiece's own file."""
    tokenizer = Tokenizer(vocabulary("unigram", True), lowercase=False)
    save_folder(Regressor(make_encoder(tokenizer), tokenizer), tokenizer, folder)
    config = json.loads((folder / "config.json").read_text())
    del config["keras_bert"]
    (folder / "config.json").write_text(json.dumps(config))
    their_config = {
        "model_type": "CrossEncoder",
        "activation_fn": "torch.nn.modules.linear.Identity",
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(their_config))
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    name = "model-00001-of-00001.safetensors"
    save_file(tensors, folder / name)
    index = {"metadata": {}, "weight_map": dict.fromkeys(list(tensors), name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def sentencepiece(folder):
    folder.mkdir()
    (folder / "spm.model").write_bytes(bert_model())
    config = {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def adapter(folder):
    tokenizer = make_tokenizer(["the"])
    base = folder.with_name("base")
    save_folder(make_encoder(tokenizer), tokenizer, base)
    encoder, _ = load(base)
    encoder.enable_lora(2)
    task = Classifier(encoder, tokenizer, labels=["a", "b"])
    task.columns = {"text": ["text"]}
    task.save_adapter(folder, base=base)
    return folder


def converted(to, folder):
    given = folder.with_name(f"before-{to}")
    tokenizer = make_tokenizer(["the"])
    if to == "glove":
        encoder = StaticEncoder(StaticConfig(vocab_size=len(tokenizer), hidden_size=4))
    else:
        encoder = make_encoder(tokenizer, hidden_act="gelu_new", layer_norm_eps=1e-12)
    save_folder(encoder, tokenizer, given)
    folder.mkdir()
    convert(given, folder / ("vectors.txt" if to == "glove" else "model"), to=to)
    return folder


def allennlp(folder):
    tokenizer = make_tokenizer(["the"])
    sizes = {"hidden_size": 4, "lstm_size": 4, "num_hidden_layers": 1, "num_highway_layers": 1}
    sizes |= {"vocab_size": len(tokenizer), "character_filters": ((1, 2),)}
    encoder = BilmEncoder(BilmConfig(**sizes))
    encoder.set_vocabulary(tokenizer.vocabulary)
    save_allennlp(encoder, tokenizer, folder)
    return folder


def data(folder):
    about = {"special_tokens": BERT_TOKENS.to_dict(), "template": BERT_TEMPLATE.to_dict()}
    return make_data_folder(folder, rows=4, eval_examples=1, masking="dynamic", shards=1, **about)


FOLDERS = {
    "wordpiece": wordpiece,
    **{
        n: functools.partial(folder_with_algorithm, n) for n in ("bpe", "byte-level-bpe", "unigram")
    },
    "sharded": sharded,
    "sentencepiece": sentencepiece,
    "adapter": adapter,
    **{name: functools.partial(converted, name) for name in ("google", "keras-nlp", "glove")},
    "allennlp": allennlp,
    "data": data,
}
FEW, MANY = 2, 60  # changes of each file, in the tests that always run and in the slow ones


def answer(name, folder, *, predicts):
    """Opens the folder, and asks the task for an answer."""
    if name == "sentencepiece":
        return Tokenizer.from_folder(folder).tokenize_with_offsets(["the bank 7"])
    if name in ("google", "keras-nlp", "glove", "allennlp"):
        _, tokenizer = load(folder if name == "allennlp" else next(folder.iterdir()))
        return tokenizer.tokenize(["the bank 7"])
    if name == "data":
        return read_data(folder)
    task = load_task(folder)
    return list(predict(model=task, data=folder.parent / "data.jsonl")) if predicts else task


def read_data(folder):
    """Reads of a data folder what training and `inspect` read."""
    opened = DataFolder.open(folder)
    vocabulary, card = opened.vocabulary(), opened.card
    opened.check_vocabulary(vocabulary)
    examples = [[*read_examples(opened, shard)] for shard in opened.shards("train")]
    return examples, repr(opened), opened._repr_html_(), card.to_json(), card.masker(vocabulary)


def check(name, folder, *, most):
    """Changes each file in turn.

    Returns how many changes there were, how many had an answer, and those that had neither an
    answer nor a sentence.
    """
    changes, answers, failures = 0, 0, []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        given = path.read_bytes()
        mutations = changes_of_file(path)
        if len(mutations) > most:
            mutations = random.Random(f"{name} {path.name} {most} {shifted(0)}").sample(
                mutations, most
            )
        for what, make in mutations:
            put(path, make())
            changes += 1
            try:
                answer(name, folder, predicts=most == MANY)
                answers += 1
            except Exception as error:
                is_sentence = "\n" not in str(error) and str(error).endswith((".", "!"))
                if not (isinstance(error, InputError) and is_sentence):
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{place.filename}:{place.lineno}"
                    failures.append(f"{path.name}: {what}: {error!r:.200} at {place}")
        put(path, given)
    return changes, answers, failures


@contextlib.contextmanager
def few_gigabytes(count=6):
    """A number that asks for more memory is a MemoryError, and not the end of all tests."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (count << 30), limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize(
    "name, most",
    [(name, FEW) for name in FOLDERS if name != "keras-nlp"]  # whose import takes 6 s
    + [pytest.param(name, MANY, marks=pytest.mark.slow) for name in FOLDERS],
)
def test_a_broken_file_is_an_answer_or_a_sentence(name, most, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    folder = FOLDERS[name](tmp_path / "folder")
    row = dict.fromkeys(("text", "text_a", "text_b"), "the bank 7")
    (tmp_path / "data.jsonl").write_text(json.dumps(row))
    with eagerly(), few_gigabytes(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changes, answers, failures = check(name, folder, most=most)
        answer(name, folder, predicts=most == MANY)  # what was changed is as before
    assert not failures, "\n".join(failures)
    assert 0 < changes and answers < changes


@pytest.mark.parametrize(
    "token, expected",
    [("▁" + "a" * 300_000, "65,536 are possible"), ("a" * 70_000, "65,536 are possible")],
)
def test_a_piece_that_sentencepiece_cannot_hold_is_an_error(token, expected, tmp_path):
    """It would end the process."""
    folder = folder_with_algorithm("unigram", tmp_path / "folder")
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["vocab"][-1][0] = token
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        load_task(folder)


def test_a_wordpiece_token_of_a_million_characters_is_an_error(tmp_path):
    folder = wordpiece(tmp_path / "folder")
    for name in ("tokenizer.json", "added_tokens.json"):
        (folder / name).unlink(missing_ok=True)
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("a" * 1_000_000 + "\n")
    with pytest.raises(InputError, match="a token of 1000000 bytes|1,000,000 bytes"):
        Tokenizer.from_folder(folder)
