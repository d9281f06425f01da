"""A program of a user's with types, which `mypy` checks; it is never run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import keras_bert as kb
from keras_bert.encoders.encoder import Encoder


def on_the_folder(folder: Path) -> None:
    encoder, tokenizer = kb.load(folder, dtype="mixed_bfloat16")
    assert_type(encoder, Encoder)
    assert_type(tokenizer, kb.Tokenizer | None)
    config = kb.BertConfig.preset("tiny", vocab_size=100)
    assert_type(config.hidden_size, int)
    assert_type(config.classifier_dropout, float | None)
    assert_type(config.parameter_count(), int)
    other = kb.Tokenizer.from_vocab(folder / "vocab.txt", lowercase=True)
    assert_type(len(other), int)
    assert_type(other.vocabulary.id("[MASK]"), int)
    assert_type(kb.load_vocabulary("vocab.txt").token(3), str)


def through_the_commands() -> None:
    predictions: Iterator[dict[str, Any]] = kb.predict(model="hf://owner/name", text="one")
    next(predictions)["label"]
    kb.predict(model="m", text=["one", "two"], crf=True, as_dataframe=True).to_csv("p.csv")
    metrics = kb.pretrain(data=Path("d"), vocab="v", output="o", steps=3, report=print)
    assert_type(metrics, dict[str, Any])
    kb.pretrain(data="d", vocab="v", output="o", steps="3")  # type: ignore[arg-type]
    kb.pretrain(data="d", vocab="v", output="o", step=3)  # type: ignore[call-arg]
    kb.finetune(model="m", train="t", dev="d", output="o", learning_rate=1)
    kb.finetune(model="m", train="t", dev="d", output="o", task="tagger", crf=True)
    kb.finetune(model="m", train="t", dev="d", output="o", epochs=0.5)  # type: ignore[call-overload]
    kb.finetune(model="m", train="t", dev="d", output="o", epoch=5)  # type: ignore[call-overload]
    kb.finetune(model="m", train="t", output="o")
    kb.finetune(model="m", train="t")  # type: ignore[call-overload]
    kb.convert("a", "b", report=lambda line: None)
    kb.convert("a")  # type: ignore[call-arg]
    assert_type(kb.evaluate(model="m", data="d", show_errors=3, fields="text=a"), dict[str, Any])
    assert_type(kb.generate(model="m", prompt="Once", on_text=print)[0].text, str)
    kb.generate(model="m", prompt="Once", top_p="0.9")  # type: ignore[arg-type]
    assert_type(next(kb.ask(url="http://h:1", model="m", text_a=["one"])), dict[str, Any])
    kb.embed_to_file(model="m", data=["one"], output="e.parquet", progress=True)
    kb.learn_vocabulary(input=["a", Path("b")], output="v", size=9, beam_options=["--runner=X"])
    for embedding in kb.embed(model="m", text="one"):
        assert_type(embedding.tokens, list[str])
    assert_type(kb.fill_mask(model="m", text="a [MASK]")[0][0].probability, float)
    assert_type(kb.push(model="m", to="owner/name"), str)
    assert_type(kb.draw_run("runs/a"), list[Path])
    kb.nothing_of_the_kind  # type: ignore[attr-defined] # noqa: B018
