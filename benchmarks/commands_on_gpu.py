"""Speed of `pretrain` on a GPU, with its input.

`pretraining_step.py --gpu` calls this. The text is Python's manual and docstrings, the weights are
random. All batches are read by tf.data.
"""

import json

from keras_bert.samples.texts import write_docstrings, write_manual
from keras_bert.text.vocabulary_files import load_vocabulary


def print_commands(point, lengths, *, batch_tokens, steps, folder):
    """Prints tokens a second of `pretrain` at each length.

    Args:
        point: the `Point` whose config and dtype they have.
        lengths: tokens of the rows.
        batch_tokens: in a step.
        steps: of a run.
        folder: the path of an empty folder.
    """
    files = write_text(point, folder)
    print("\n| command | rows | tokens/s | input wait, % | MFU, % |\n|---|---|---|---|---|")
    for length in lengths:
        print_pretraining(point, length, files, batch_tokens, steps, folder)


def write_text(point, folder):
    """Writes the text and its vocabulary, `vocab.txt`, into a folder; returns the text's paths."""
    from data_gen.vocabulary import learn_vocabulary

    files = [*write_manual(folder / "manual"), *write_docstrings(folder / "docstrings")]
    size = point.config.vocab_size
    learn_vocabulary(input=[*map(str, files)], output=folder / "vocab.txt", size=size)
    return files


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
