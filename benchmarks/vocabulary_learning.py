"""How fast a vocabulary is learned and how good it is, beside Hugging Face's `tokenizers`.

    python benchmarks/vocabulary_learning.py

Both learn from the same words of 10 MB of books, counted by our tokenizer's own normalization and
splitting; their trainers take no counts, so they are fed each word as often as it stands there, and
their time begins when they have taken the last one. Turns alternate, and the medians are printed,
by the clock and by the processor's time (their trainer works in several threads). "Pieces a word"
are those of a book that was not learned from: WordPiece by the longest
piece first with both vocabularies, byte-pair encoding by the merges of each. The two kinds of
byte-pair encoding are not the same: our mark of the end of a word is a symbol of its own, as in the
textbook, theirs a part of the last letter. Needs ../shared/data beside the checkout. Two to five
minutes on two cores.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

MEGABYTE = 1_000_000
LEFT_OUT = "emma.txt"
WORDS_A_LINE = 100  # of what the peer is fed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--megabytes", type=float, default=10.0, help="of books to learn from")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8000, 30_000])
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        print("Not measured: there is no ../shared/data.")
        return
    books = sorted((arguments.data / "books").glob("*.txt"))
    learned_from = read([book for book in books if book.name != LEFT_OUT])
    counts = count_words(learned_from[: int(arguments.megabytes * MEGABYTE)])
    left_out = count_words(read([arguments.data / "books" / LEFT_OUT]))
    print(
        f"{counts.total():,} words, {len(counts):,} different ones; {LEFT_OUT}, which is left out, "
        f"has {left_out.total():,}."
    )
    header = ("pieces", "asked", "returned", "pieces a word", "seconds", "of processor")
    print(("{:24}" + "{:>14}" * 5).format(*header))
    for algorithm in ("wordpiece", "bpe"):
        for size in arguments.sizes:
            compare(algorithm, size, counts, left_out, arguments.turns)
    compare_with_tensorflow_text(max(arguments.sizes), counts)
    time_the_job(learned_from[: int(arguments.megabytes * MEGABYTE)], max(arguments.sizes))


def compare_with_tensorflow_text(size, counts):
    """Prints what TensorFlow Text's own learner takes and gives; once, as it takes so long."""
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    from keras_bert.text.vocabulary import SPECIAL_TOKENS

    watch = Stopwatch()
    tokens = learner.learn(list(counts.items()), size, list(SPECIAL_TOKENS))
    seconds, processor = watch.read()
    row = f"{size:14,}{len(tokens):14,}{'':14}{seconds:14.2f}{processor:14.2f}"
    print(f"{'wordpiece, tf-text':24}{row}")


def time_the_job(text, size):
    """Prints the time of the whole job, and of one that has next to nothing to do: its start-up."""
    from data_gen.vocabulary import learn_vocabulary

    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("start-up (a tiny text)", text[:20_000]), ("whole job", text)):
            file = Path(folder) / "text.txt"
            file.write_text(part, encoding="utf-8")
            watch = Stopwatch()
            learn_vocabulary(
                input=file, output=Path(folder) / name, size=size,
                beam_options=["--direct_num_workers=1"],
            )  # fmt: skip
            print(f"keras-bert vocab, {name}: {watch.read()[0]:.1f} s, imports not counted")


def read(books):
    return "\n".join(book.read_text(encoding="utf-8") for book in books)


def count_words(text):
    """word -> count, as our vocabulary job counts them (uncased)."""
    import tensorflow as tf

    from keras_bert.text.normalization import WordSplitter, normalize

    words = WordSplitter().words(normalize(tf.constant(text.split("\n")), lowercase=True))
    return Counter({word.decode(): count for word, count in Counter(words).items()})


def compare(algorithm, size, counts, left_out, turns):
    """Prints a row for each of both, and the ratios."""
    our_seconds, their_seconds = [], []
    for _ in range(turns):
        vocabulary, seconds = learn_ours(algorithm, counts, size)
        our_seconds.append(seconds)
        tokenizer, seconds = learn_theirs(algorithm, counts, size)
        their_seconds.append(seconds)
    rows = {
        "keras-bert": (
            len(vocabulary),
            our_tokens(algorithm, vocabulary, left_out),
            medians(our_seconds),
        ),
        "tokenizers": (
            tokenizer.get_vocab_size(),
            their_tokens(algorithm, tokenizer, left_out),
            medians(their_seconds),
        ),
    }
    for name, (tokens, length, seconds) in rows.items():
        print(
            f"{algorithm + ', ' + name:24}{size:14,}{tokens:14,}{length:14.4f}"
            f"{seconds[0]:14.2f}{seconds[1]:14.2f}"
        )
    (_, length, mine), (_, peers, peer) = rows.values()
    print(
        f"  keras-bert's: {100 * (length / peers - 1):+.2f} % pieces a word, "
        f"{mine[0] / peer[0]:.2f} times the seconds, {mine[1] / peer[1]:.2f} times the processor's"
    )


class Stopwatch:
    """Seconds since it was started, by the clock and of the processor."""

    def __init__(self):
        self.start()

    def start(self):
        self._began = time.perf_counter(), time.process_time()

    def read(self):
        return time.perf_counter() - self._began[0], time.process_time() - self._began[1]


def medians(times):
    return [statistics.median(column) for column in zip(*times, strict=True)]


def learn_ours(algorithm, counts, size):
    """(the vocabulary, the seconds that learning it took)."""
    from keras_bert.text.learners import learn_bpe, learn_wordpiece

    learn = {"wordpiece": learn_wordpiece, "bpe": learn_bpe}[algorithm]
    watch = Stopwatch()
    return learn(counts, size=size), watch.read()


def learn_theirs(algorithm, counts, size):
    """(the tokenizer, the seconds from the last word that it took to the end)."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    from keras_bert.text.vocabulary import SPECIAL_TOKENS, UNK

    options = {"vocab_size": size, "special_tokens": list(SPECIAL_TOKENS), "show_progress": False}
    if algorithm == "wordpiece":
        model, trainer = models.WordPiece(unk_token=UNK), trainers.WordPieceTrainer(**options)
    else:
        options |= {"end_of_word_suffix": "</w>"}
        model = models.BPE(unk_token=UNK, end_of_word_suffix="</w>")
        trainer = trainers.BpeTrainer(**options)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    watch = Stopwatch()
    tokenizer.train_from_iterator(lines(counts, watch), trainer)
    return tokenizer, watch.read()


def lines(counts, watch):
    """Texts that hold each word as often as it is counted; starts the watch after the last one."""
    for word, count in counts.items():
        whole, rest = divmod(count, WORDS_A_LINE)
        line = " ".join([word] * WORDS_A_LINE)
        yield from [line] * whole
        if rest:
            yield " ".join([word] * rest)
    watch.start()


def our_tokens(algorithm, vocabulary, counts):
    from keras_bert.text.learners import longest_tokens

    if algorithm == "wordpiece":
        tokens = set(vocabulary.tokens)
        return mean_tokens(counts, lambda word: longest_tokens(word, tokens))
    return mean_tokens(counts, vocabulary.encode_word)


def their_tokens(algorithm, tokenizer, counts):
    from keras_bert.text.learners import longest_tokens

    if algorithm == "wordpiece":
        tokens = set(tokenizer.get_vocab())
        return mean_tokens(counts, lambda word: longest_tokens(word, tokens))
    return mean_tokens(counts, lambda word: tokenizer.encode(word).tokens)


def mean_tokens(counts, encode):
    return sum(len(encode(word)) * count for word, count in counts.items()) / counts.total()


if __name__ == "__main__":
    main()
