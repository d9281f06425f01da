"""Turns text files into TFRecord rows for pre-training, with an Apache Beam job.

Any option of Apache Beam may follow, such as --direct_num_workers=4 for four local processes, or
--runner=DataflowRunner and its own (docs/pretraining_data.md has the whole command).
"""

from keras_bert.cli import flags

SUMMARY = "turn text into records for pre-training"
BEAM_OPTIONS = True


def add_arguments(parser, argv):
    parser.add_argument(
        "--input",
        required=True,
        nargs="+",
        metavar="GLOB",
        help="text files, gzip too (books, one sentence a line, JSON Lines with a text field), "
        "Parquet files, or tfds:NAME/CONFIG:SPLIT of a prepared dataset",
    )
    flags.vocab(parser, "the vocabulary", required=True)
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder to make")
    parser.add_argument(
        "--form",
        choices=("book", "lines", "jsonl"),
        help="the form of the text: a book a file, a sentence a line with blank lines between "
        "documents, JSON Lines (default: told from each file)",
    )
    parser.add_argument(
        "--objective",
        choices=("mlm-nsp", "mlm", "span"),
        default="mlm-nsp",
        help="masked tokens and next sentence, masked tokens alone, or masked spans with their "
        "boundaries (default: %(default)s)",
    )
    parser.add_argument(
        "--masking",
        choices=("static", "dynamic"),
        default="static",
        help="mask now, or in training, anew in each epoch (default: %(default)s)",
    )
    parser.add_argument(
        "--mask-unit",
        choices=("token", "whole-word"),
        help="what is masked as one for mlm-nsp and mlm (default: token)",
    )
    parser.add_argument(
        "--replacement",
        choices=("uniform", "unigram"),
        default="uniform",
        help="how the pieces are drawn that replace a tenth of the masked ones: all alike, or as "
        "frequent as they are in the text: as vocab.counts.tsv beside the vocabulary says, or, "
        "where there is none, as a first pass over the text counts (default: %(default)s)",
    )
    flags.max_length(parser)
    parser.add_argument(
        "--max-predictions",
        type=int,
        default=20,
        metavar="N",
        help="masked tokens in a row, at most (default: %(default)s)",
    )
    parser.add_argument(
        "--masked-rate",
        type=float,
        default=0.15,
        metavar="SHARE",
        help="share of the tokens to mask (default: %(default)s)",
    )
    parser.add_argument(
        "--short-rate",
        type=float,
        metavar="SHARE",
        help="share of rows of a random shorter length (default: 0.1 for mlm-nsp, else 0)",
    )
    parser.add_argument(
        "--dupe-factor",
        type=int,
        metavar="N",
        help="go through the text N times, with other pairs and masks each time "
        "(default: 5 for static masks, 1 for dynamic ones)",
    )
    parser.add_argument(
        "--eval-fraction",
        type=float,
        default=0.02,
        metavar="SHARE",
        help="share of the documents to hold out (default: %(default)s)",
    )
    flags.seed(parser)
    flags.cased(parser)
    parser.add_argument(
        "--pad",
        action="store_true",
        help="write rows of a fixed length, with the features that google-research/bert reads",
    )
    parser.add_argument("--compression", choices=("gzip",), help="compress the shards")
    parser.add_argument(
        "--text-field",
        default="text",
        metavar="NAME",
        help="the field, column or feature that holds the text (default: %(default)s)",
    )
    parser.add_argument(
        "--drop-duplicates",
        action="store_true",
        help="read only one of documents that are alike to the letter",
    )
    parser.add_argument(
        "--min-characters",
        type=int,
        default=0,
        metavar="N",
        help="leave out documents that are shorter",
    )
    parser.add_argument(
        "--max-characters", type=int, metavar="N", help="leave out documents that are longer"
    )
    parser.add_argument(
        "--min-letters",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="leave out documents with a smaller share of letters, white space aside",
    )
    parser.add_argument(
        "--max-repeated-lines",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="leave out documents with a greater share of lines that stood in them before",
    )
    parser.add_argument(
        "--bad-lines",
        choices=("error", "skip"),
        default="error",
        help="what to do with a line that is not UTF-8, holds a NUL or is broken JSON "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--item-bytes",
        type=int,
        default=2 << 20,
        metavar="BYTES",
        help="bytes of text that make one shard (default: %(default)s)",
    )
    flags.force(parser, help="replace finished data in the output folder")


def run(arguments):
    import logging
    import shlex

    from rich.console import Console

    from data_gen.pretraining_data import make_pretraining_data

    if arguments.verbose:
        logging.basicConfig()
        logging.getLogger("apache_beam").setLevel(logging.INFO)
    console = Console(highlight=False)
    card = make_pretraining_data(
        input=arguments.input,
        vocab=arguments.vocab,
        output=arguments.output,
        form=arguments.form,
        objective=arguments.objective,
        masking=arguments.masking,
        mask_unit=arguments.mask_unit,
        replacement=arguments.replacement,
        max_length=arguments.max_length,
        max_predictions=arguments.max_predictions,
        masked_rate=arguments.masked_rate,
        short_rate=arguments.short_rate,
        dupe_factor=arguments.dupe_factor,
        eval_fraction=arguments.eval_fraction,
        seed=arguments.seed,
        lowercase=False if arguments.cased else None,
        pad=arguments.pad,
        compression=arguments.compression,
        bad_lines=arguments.bad_lines,
        text_field=arguments.text_field,
        min_characters=arguments.min_characters,
        max_characters=arguments.max_characters,
        min_letters=arguments.min_letters,
        max_repeated_lines=arguments.max_repeated_lines,
        drop_duplicates=arguments.drop_duplicates,
        item_bytes=arguments.item_bytes,
        force=arguments.force,
        beam_options=arguments.beam_options,
    )
    console.print("\n".join(_summary(card)), soft_wrap=True)
    if not card.lowercase and not arguments.cased:
        console.print("Capitals and accents were kept: the folder of the vocabulary says so.")
    output = shlex.quote(arguments.output)
    following = f"keras-bert inspect {output}"
    if arguments.objective != "span":  # which pretrain refuses as long as there is no head for it
        following += (
            f", or keras-bert pretrain --data {output} --architecture tiny "
            f"--vocab {shlex.quote(arguments.vocab)} --output pretrained --steps 10000"
        )
    console.print(f"Next: {following}", soft_wrap=True)


def _summary(card):
    """What the job read and wrote, from its card."""
    from data_gen.text_files import skipped_lines

    counters, train = card.counters, card.splits["train"]
    forms = [
        f"{count:,} of the form {name.removeprefix('files_of_form_')}"
        for name, count in counters.items()
        if name.startswith("files_of_form_")
    ]
    yield (
        f"Read {counters['bytes_of_text'] / 1e6:,.1f} MB in {counters['documents']:,} documents "
        f"(files: {', '.join(forms)})."
    )
    for reason, count in skipped_lines(counters).items():
        yield f"Skipped {_number(count, 'line')}: {reason}."
    for name, count in counters.items():
        if name.startswith("dropped_"):
            reason = name.removeprefix("dropped_").replace("_", " ")
            yield f"Left out {_number(count, 'document')}: {reason}."
    if counters.get("empty_rows"):
        yield f"Skipped {_number(counters['empty_rows'], 'row')} without text."
    if counters.get("long_documents_cut"):
        times = _number(counters["long_documents_cut"], "time")
        yield f"Cut documents of more than 64 MiB, {times}."
    for split, counts in card.splits.items():
        if counts.instances:
            yield (
                f"Wrote {_number(counts.instances, f'{split} row')} of "
                f"{counts.tokens / counts.instances:.1f} tokens on average "
                f"in {_number(counts.shards, 'shard')}, made of "
                f"{_number(counts.counters['sentences'], 'sentence')} with "
                f"{_number(counts.counters['tokens_of_text'], 'token')}"
                f"{_truncations(counts.counters)}."
            )
        else:
            yield f"There are no {split} rows."
    share = train.counters["unknown_tokens"] / max(1, train.counters["tokens_of_text"])
    yield (
        f"[UNK]: {share:.3%} of the tokens. Unigram entropy: {card.unigram_entropy:.3f} nats "
        "a token, the loss to beat."
    )


def _truncations(counts):
    """What of a split's text did not fit, as the end of a sentence."""
    said = (
        ("truncated_pairs", "pairs were cut to the length"),
        ("long_sentences_cut", "sentences were longer than a row and cut"),
        ("sentences_without_partner", "sentences found no partner"),
    )
    return "".join(f"; {counts[name]:,} {what}" for name, what in said if counts.get(name))


def _number(count, what):
    return f"{count:,} {what}{'' if count == 1 else 's'}"
