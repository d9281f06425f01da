"""The commands that make and show pre-training data: vocab, pretraining-data, inspect."""

import shlex
from importlib import import_module
from pathlib import Path

from keras_bert.base.formatting import counted, listed, percent
from keras_bert.base.settings import Settings, required, setting
from keras_bert.cli.command import command, console, report
from keras_bert.records import CAUSAL_LM
from keras_bert.tasks.pretraining import StaticVectorSettings
from keras_bert.training.objective_settings import default_architecture

_COLOURS = ("cyan", "yellow")
_OUTCOMES = ("masked", "kept", "replaced")


@command(
    "vocab",
    "learn a vocabulary from text",
    settings=lambda first: import_module("data_gen.settings").VocabularySettings,
    takes_beam_options=True,
)
def vocab(settings, arguments):
    """Learn a vocabulary from text files, and write it.

    WordPiece is written as the file vocab.txt, byte-pair encoding (--algorithm bpe or
    byte-level-bpe) and a unigram model (--algorithm unigram) as a folder.
    Any option of Apache Beam may follow, such as --direct_num_workers=4 to count words in four
    processes, or --runner.
    """
    from data_gen.vocabulary import learn_vocabulary

    with console(stderr=True).status("Counting words and learning tokens …"):
        learned = learn_vocabulary(**settings, beam_options=arguments.beam_options, report=report)
    for reason, number in learned.skipped_lines.items():
        print(f"Skipped {counted(number, 'line')}: {reason}.")
    counts = learned.vocabulary.counts
    print(
        f"{counted(len(learned.vocabulary), 'token')} from {counted(learned.words, 'word')} "
        f"({learned.distinct_words:,} different ones): "
        f"{counts.sum() / learned.words:.3f} tokens per word."
    )
    if unknown := counts[learned.vocabulary.unk_id]:
        print(
            f"{percent(unknown / counts.sum(), decimals=2)} of them are [UNK], for characters that "
            "are not in the vocabulary. A higher --alphabet-limit covers more of them."
        )
    if len(learned.vocabulary) < settings["size"]:
        requested = f"{settings['size']:,} were requested"
        if (least := settings.get("min_frequency", 1)) > 1:
            reason = f"No other token occurs {least:,} times in the text, and {requested}."
            print(f"{reason} A lower --min-frequency or more text gives more tokens.")
        else:
            print(f"The text has no other tokens; {requested}. More text gives more tokens.")
    words = ["--input", *settings["input"], "--vocab", settings["output"], "--output", "data"]
    for name in ("text_field", "bad_lines"):
        if name in settings:
            words += [f"--{name.replace('_', '-')}", settings[name]]
    words += ["--cased"] * bool(settings.get("cased"))
    return f"keras-bert pretraining-data {shlex.join(words)}"


@command(
    "pretraining-data",
    "turn text into records for pre-training",
    settings=lambda first: import_module("data_gen.settings").DataSettings,
    takes_beam_options=True,
)
def pretraining_data(settings, arguments):
    """Turn text files into TFRecord examples for pre-training, with an Apache Beam job.

    Any option of Apache Beam may follow, such as --direct_num_workers=4 for four local processes,
    or --runner=DataflowRunner and its own (docs/clusters.md has the whole commands).
    """
    import logging

    from data_gen.pretraining_data import pretraining_data
    from keras_bert.text.vocabulary_files import load_vocabulary

    if arguments.verbose:
        logging.basicConfig()
        logging.getLogger("apache_beam").setLevel(logging.INFO)
    card = pretraining_data(**settings, beam_options=arguments.beam_options, report=report)
    print("\n".join(_summary(card)))
    if not card.lowercase and not settings.get("cased"):
        print("Capitals and accents were kept, as the vocabulary's folder requires.")
    start = _start_from(settings["vocab"], settings["output"])
    start = start or new_encoder(card, load_vocabulary(settings["vocab"]))
    output = shlex.quote(settings["output"])
    return f"keras-bert inspect {output}, or {_pretrain_command(output, start)}"


def _pretrain_command(data, start):
    return f"keras-bert pretrain --data {data} {start} --steps 10000 --output pretrained"


def _start_from(vocab, data):
    """The flags that continue the model folder of a vocabulary on a data folder.

    None if the vocabulary is not of a model folder, or the model cannot be trained on the data.
    """
    path = Path(vocab)
    model = path if path.is_dir() else path.parent
    if not (model / "config.json").exists():
        return None
    try:
        from keras_bert.training.pretraining_task import continued_task_class
    except ImportError:  # Keras has no backend here, which the job does not need
        return None
    task_class = continued_task_class(model, data)
    if task_class is None:
        return None
    # The default is for random weights, except that of static vectors.
    rate = "" if task_class.SETTINGS is StaticVectorSettings else " --learning-rate 5e-5"
    return f"--model {shlex.quote(str(model))}{rate}"


def new_encoder(card, vocabulary, *, architecture=None):
    """The flags that start pre-training on a data folder from random weights.

    Args:
        card: the `DatasetCard` of the folder.
        vocabulary: its `Vocabulary`.
        architecture: the name of one for examples and a vocabulary that such a model takes; None is
            the default one.
    """
    from keras_bert.encoders import read_architecture

    if vocabulary.algorithm == "wordpiece" and not vocabulary.continuations.any():
        return "--architecture static"  # whole words
    has_mask = card.special_tokens.mask
    architecture = architecture or default_architecture(card.objective if has_mask else CAUSAL_LM)
    if card.max_length > read_architecture(architecture, vocabulary).max_length:
        architecture = f"CONFIG_OF_{card.max_length}_POSITIONS.json"
    flags = f"--architecture {architecture}"
    return flags if has_mask else f"{flags} --objective causal-lm"


def _summary(card):
    """Yields lines about what the job read and wrote, from its card."""
    from data_gen.settings import dropped_documents
    from data_gen.text_files import skipped_lines
    from keras_bert.records.masking import most_predictions
    from keras_bert.text.vocabulary import note_on_unknown

    counters, train = card.counters, card.splits["train"]
    forms = [
        f"{count:,} in the format {name.removeprefix('files_of_form_')}"
        for name, count in counters.items()
        if name.startswith("files_of_form_")
    ]
    size = counters["bytes_of_text"]
    yield (
        f"Read {f'{size / 1e6:,.1f} MB' if size >= 1e5 else f'{size / 1e3:,.1f} kB'} in "
        f"{counted(counters['documents'], 'document')} (files: {listed(forms)})."
    )
    for reason, count in skipped_lines(counters).items():
        yield f"Skipped {counted(count, 'line')}: {reason}."
    for reason, count in dropped_documents(counters).items():
        yield f"Left out {counted(count, 'document')}: {reason}."
    if counters.get("empty_rows"):
        yield f"Skipped {counted(counters['empty_rows'], 'record')} without text."
    if counters.get("long_documents_cut"):
        times = counted(counters["long_documents_cut"], "time")
        yield f"Cut documents of more than 64 MiB, {times}."
    for split, counts in card.splits.items():
        if counts.instances:
            yield (
                f"Wrote {counted(counts.instances, f'{split} example')} of "
                f"{counts.tokens / counts.instances:.1f} tokens on average "
                f"in {counted(counts.shards, 'shard')}, made of "
                f"{counted(counts.counters['sentences'], 'sentence')} with "
                f"{counted(counts.counters['tokens_of_text'], 'token')}"
                f"{_truncations(counts.counters)}."
            )
        else:
            yield f"Wrote no {split} examples."
    unknown, tokens = train.counters["unknown_tokens"], train.counters["tokens_of_text"]
    yield (
        f"[UNK]: {percent(unknown / max(1, tokens), decimals=3)} of the tokens. Unigram baseline: "
        f"{card.unigram_entropy:.3f} nats per token."
    )
    if note := note_on_unknown(unknown, tokens):
        yield f"Note: {note}"
    rate, length, most = card.settings.masked_rate, card.max_length, card.max_predictions
    if (needed := most_predictions(length, rate=rate, max_predictions=length)) > most:
        yield (
            f"Note: examples have at most {most} predictions, {percent(most / length)} of {length} "
            f"tokens; with --max-predictions {needed} all examples have {percent(rate)}."
        )


def _truncations(counts):
    """Says what of a split's text did not fit, as the end of a sentence."""
    reasons = (
        ("truncated_pairs", "pair", "truncated"),
        ("long_sentences_cut", "sentence", "longer than an example and split"),
        ("sentences_without_partner", "sentence", "without a partner"),
    )
    return "".join(
        f"; {counted(counts[name], noun)} {reason}"
        for name, noun, reason in reasons
        if counts.get(name)
    )


class InspectSettings(Settings):
    path: str = required(
        help="a folder that keras-bert pretraining-data wrote, or a shard in one",
        unit="PATH",
        positional=True,
    )
    split: str = setting("train", help="the split to show", choices=("train", "eval"))
    count: int = setting(5, help="number of examples to show", unit="N", at_least=0)
    verify: bool = setting(
        False, help="check every example of the folder against the invariants instead"
    )


@command("inspect", "show pre-training examples as text", settings=InspectSettings)
def inspect(settings, arguments):
    """Show pre-training examples as text.

    Subword tokens are joined to words. A masked token is followed by the original in braces:
    [MASK]{cat}, cat{cat} if the token was kept, dog{cat} if it was replaced by a random one.
    A span is enclosed in < and >, and the tokens at its boundaries are underlined.
    """
    from keras_bert.records import DataFolder
    from keras_bert.records.inspection import SEGMENT_LABELS, read_instances

    settings = InspectSettings.of(settings)
    path = Path(settings.path)
    folder = DataFolder.open(path.parent if path.is_file() else settings.path)
    labels = SEGMENT_LABELS.get(folder.card.objective)
    if settings.verify:
        _verify(folder, labels)
    else:
        terminal = console()
        shards = [str(path)] if path.is_file() else folder.shards(settings.split)
        for instance in read_instances(folder, shards, count=settings.count):
            terminal.print(_as_text(instance, labels), soft_wrap=not terminal.is_terminal)
            terminal.print()
    return _pretrain_command(
        shlex.quote(folder.path), new_encoder(folder.card, folder.vocabulary())
    )


def _as_text(instance, labels):
    """`labels` are the words for a second segment that is next, and for one that is not."""
    from rich.text import Text

    text = Text()  # without a style of its own, which all appended text would have
    text.append(f"{instance.number}", style="bold")
    if instance.is_next is not None:
        text.append(f"  {labels[0] if instance.is_next else labels[1]}", style="bold")
    text.append("\n")
    tokens = instance.tokens
    for number, token in enumerate(tokens):
        if number and token.word_start:
            text.append(" ")
        if token.span and tokens[number - 1].span != token.span:
            text.append("<", style="bold")
        style = "dim" if token.segment is None else _COLOURS[token.segment]
        if token.boundary:
            style += " underline"
        if token.original is None:
            text.append(token.text, style=style)
        else:
            text.append(f"{token.text}{{{token.original}}}", style=f"bold reverse {style}")
        # An example never ends with a span: [SEP] is the last token.
        if token.span and tokens[number + 1].span != token.span:
            text.append(">", style="bold")
    return text


def _verify(folder, labels):
    from keras_bert.records.inspection import verify

    for split, counts in verify(folder).items():
        line = (
            f"{split}: {counted(counts['rows'], 'example')}, {counted(counts['tokens'], 'token')}"
        )
        if total := counts["predictions"]:
            outcomes = (f"{name} {percent(counts[name] / total, decimals=2)}" for name in _OUTCOMES)
            line += f", {counted(total, 'prediction')} ({', '.join(outcomes)})"
        if folder.card.has_pairs and counts["rows"]:
            fraction = percent(counts[labels[1]] / counts["rows"], decimals=2)
            line += f", second segment {labels[1]} in {fraction}"
        print(line)
    print("All examples satisfy the invariants, and the counts match the dataset card.")
