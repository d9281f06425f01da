"""Turns text files into TFRecord rows for pre-training, with an Apache Beam job.

Any option of Apache Beam may follow, such as --direct_num_workers=4 for four local processes, or
--runner=DataflowRunner and its own (docs/pretraining_data.md has the whole command).
"""

import shlex

from keras_bert.base.formatting import counted, listed, percent
from keras_bert.cli import flags
from keras_bert.cli.report import report

SUMMARY = "turn text into records for pre-training"
BEAM_OPTIONS = True


def add_arguments(parser, argv):
    from data_gen.settings import DataSettings

    flags.add(parser, DataSettings)


def run(arguments):
    flags.reject_unknown(arguments.beam_options)
    settings = flags.read(arguments)
    import logging

    from data_gen.pretraining_data import make_pretraining_data

    if arguments.verbose:
        logging.basicConfig()
        logging.getLogger("apache_beam").setLevel(logging.INFO)
    card = make_pretraining_data(**settings, beam_options=arguments.beam_options, report=report)
    print("\n".join(_summary(card)))
    if not card.lowercase and not settings.get("cased"):
        print("Capitals and accents were kept: the folder of the vocabulary says so.")
    print(f"Next: {_following(settings)}")


def _following(settings):
    output = shlex.quote(settings["output"])
    return (
        f"keras-bert inspect {output}, or keras-bert pretrain --data {output} --architecture tiny "
        f"--vocab {shlex.quote(settings['vocab'])} --output pretrained --steps 10000"
    )


def _summary(card):
    """What the job read and wrote, from its card."""
    from data_gen.settings import dropped_documents
    from data_gen.text_files import skipped_lines
    from keras_bert.records.masking import most_predictions
    from keras_bert.text.tokenizer import note_on_unknown

    counters, train = card.counters, card.splits["train"]
    forms = [
        f"{count:,} of the form {name.removeprefix('files_of_form_')}"
        for name, count in counters.items()
        if name.startswith("files_of_form_")
    ]
    yield (
        f"Read {counters['bytes_of_text'] / 1e6:,.1f} MB in "
        f"{counted(counters['documents'], 'document')} "
        f"(files: {listed(forms)})."
    )
    for reason, count in skipped_lines(counters).items():
        yield f"Skipped {counted(count, 'line')}: {reason}."
    for reason, count in dropped_documents(counters).items():
        yield f"Left out {counted(count, 'document')}: {reason}."
    if counters.get("empty_rows"):
        yield f"Skipped {counted(counters['empty_rows'], 'row')} without text."
    if counters.get("long_documents_cut"):
        times = counted(counters["long_documents_cut"], "time")
        yield f"Cut documents of more than 64 MiB, {times}."
    for split, counts in card.splits.items():
        if counts.instances:
            yield (
                f"Wrote {counted(counts.instances, f'{split} row')} of "
                f"{counts.tokens / counts.instances:.1f} tokens on average "
                f"in {counted(counts.shards, 'shard')}, made of "
                f"{counted(counts.counters['sentences'], 'sentence')} with "
                f"{counted(counts.counters['tokens_of_text'], 'token')}"
                f"{_truncations(counts.counters)}."
            )
        else:
            yield f"There are no {split} rows."
    unknown, tokens = train.counters["unknown_tokens"], train.counters["tokens_of_text"]
    yield (
        f"[UNK]: {percent(unknown / max(1, tokens), decimals=3)} of the tokens. Unigram entropy: "
        f"{card.unigram_entropy:.3f} nats a token, the loss to beat."
    )
    if note := note_on_unknown(unknown, tokens):
        yield f"Note: {note}"
    rate, length, most = card.settings.masked_rate, card.max_length, card.max_predictions
    if (due := most_predictions(length, rate=rate, max_predictions=length)) > most:
        yield (
            f"Note: a row has {most} predictions at most, {percent(most / length)} of {length} "
            f"tokens; --max-predictions {due} lets all rows have {percent(rate)}."
        )


def _truncations(counts):
    """What of a split's text did not fit, as the end of a sentence."""
    said = (
        ("truncated_pairs", "pairs were cut to the length"),
        ("long_sentences_cut", "sentences were longer than a row and cut"),
        ("sentences_without_partner", "sentences found no partner"),
    )
    return "".join(f"; {counts[name]:,} {what}" for name, what in said if counts.get(name))
