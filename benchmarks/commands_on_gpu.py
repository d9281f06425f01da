"""Speed of the commands on a GPU: `pretrain`, `embed` and `predict`.

`pretraining_step.py --gpu` calls this. The text is Python's manual and docstrings, the weights are
random. All batches are read by tf.data.
"""

import dataclasses
import json
import time
from pathlib import Path

from keras_bert.checkpoints import save_folder
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.samples.texts import write_docstrings, write_manual
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import load_vocabulary


def print_commands(point, lengths, *, batch_tokens, steps, texts, folder):
    """Prints tokens a second of `pretrain` at each length, and texts a second of the others.

    Args:
        point: the `Point` whose config and dtype they have.
        lengths: tokens of the rows.
        batch_tokens: in a step.
        steps: of a run of `pretrain`.
        texts: how many are embedded and classified.
        folder: an empty folder.
    """
    from data_gen.vocabulary import learn_vocabulary

    folder = Path(folder)
    files = [*write_manual(folder / "manual"), *write_docstrings(folder / "docstrings")]
    size = point.config.vocab_size
    learn_vocabulary(input=[*map(str, files)], output=folder / "vocab.txt", size=size)
    print(
        "\n| command | tokens or texts | a second | input wait, % | MFU, % |\n|---|---|---|---|---|"
    )
    for length in lengths:
        print_pretraining(point, length, files, batch_tokens, steps, folder)
    vocabulary = load_vocabulary(folder / "vocab.txt")
    config = dataclasses.replace(point.config, vocab_size=len(vocabulary))
    tokenizer = Tokenizer.from_vocab(vocabulary, lowercase=True)
    encoder = BertEncoder(config)
    save_folder(encoder, tokenizer, folder / "encoder")
    Classifier(encoder, tokenizer, labels=["a", "b"]).save(folder / "classifier")
    lines = [line for file in files for line in file.read_text().splitlines() if len(line) > 20]
    lines = (lines * (1 + texts // len(lines)))[:texts]
    for name, seconds in (
        ("embed", seconds_of(lambda: list(embedded(folder / "encoder", lines)))),
        ("predict", seconds_of(lambda: list(classified(folder / "classifier", lines)))),
    ):
        print(f"| {name}, float32 | {texts:,} lines | {texts / seconds:,.0f} | | |", flush=True)


def print_pretraining(point, length, files, batch_tokens, steps, folder):
    from data_gen.pretraining_data import pretraining_data
    from keras_bert.training.pretrain import pretrain

    data = folder / f"data-{length}"
    pretraining_data(
        input=[*map(str, files)],
        vocab=folder / "vocab.txt",
        output=data,
        objective="mlm",
        masking="dynamic",
        max_length=length,
    )
    config = {**point.config.to_dict(), "vocab_size": len(load_vocabulary(folder / "vocab.txt"))}
    (folder / "config.json").write_text(json.dumps(config))
    metrics = pretrain(
        data=data,
        architecture=folder / "config.json",
        output=folder / f"run-{length}",
        steps=steps,
        checkpoint_every=steps,
        batch_size=max(1, batch_tokens // length),
        dtype=point.policy,
        seed=0,
    )
    last = metrics["history"][-1]
    percents = [100 * last.get(name, float("nan")) for name in ("input_wait", "mfu")]
    print(
        f"| pretrain, {point.dtype} | rows of {length} | {metrics['tokens_per_second']:,.0f} | "
        f"{percents[0]:.1f} | {percents[1]:.1f} |",
        flush=True,
    )


def embedded(model, texts):
    from keras_bert.inference.embed import embed

    return embed(model=model, text=texts, tokens="none")


def classified(model, texts):
    from keras_bert.inference.predict import predict

    return predict(model=model, text=texts)


def seconds_of(call):
    """Seconds of the second call: the first compiles."""
    call()
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
