"""Learning a unigram model (Kudo 2018) from word counts, by the trainer of SentencePiece.

It begins with the frequent substrings of all words, fits their probabilities by EM, and drops those
whose loss costs least, until as many are left as were asked for.
"""

import dataclasses
import io
import os
import tempfile
from collections import Counter

from keras_bert.base.errors import InputError
from keras_bert.text import sentencepiece_model as sp
from keras_bert.text.learners import by_use, checked_counts, limit_alphabet, room_for_tokens
from keras_bert.text.vocabularies.unigram import SPACE, UnigramVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS

# SentencePiece's names of its rules: NFKC and its own for white space and control characters.
_RULES = {False: "nmt_nfkc", True: "nmt_nfkc_cf"}  # cf folds the case


def learn_unigram(counts, *, size, min_frequency=1, alphabet_limit=1000, unused=0, lowercase=True):
    """Learns a unigram model.

    Args:
        counts: mapping of word -> how often it occurs in the text; words as white space separates
            them, in the text's own case. Their order does not matter.
        size, alphabet_limit, unused: as for `learn_wordpiece`.
        min_frequency: a token of several characters must occur this often when the text is split
            into tokens.
        lowercase: whether the vocabulary folds the case of a text.

    Returns a `UnigramVocabulary` with its counts: the special tokens, then the others by falling
    count of use in the text (equal counts by code points), then the unused slots.

    Raises `InputError` if the counts are empty or `size` leaves no room for the alphabet.
    """
    counts = checked_counts(_normalized(counts, lowercase=lowercase))
    alphabet, spelled, _ = limit_alphabet(counts, alphabet_limit)
    symbols = [*alphabet, SPACE]
    room_for_tokens(size, unused=unused, symbols=symbols, alphabet=alphabet)
    if not spelled:
        raise InputError.naming(
            "Every word has a character that is left out. Use a larger {alphabet_limit}."
        )
    model = _trained(spelled, size=size - unused, lowercase=lowercase)
    use = _use(model, counts)
    letters = {*symbols, *SPECIAL_TOKENS}
    pieces = [p for p in model.pieces if p.text in letters or use[p.text] >= min_frequency]
    if len(pieces) < len(model.pieces):
        model = dataclasses.replace(model, pieces=tuple(pieces))
        use = _use(model, counts)
    scores = {piece.text: piece.score for piece in model.pieces}
    tokens = by_use([token for token in scores if token not in SPECIAL_TOKENS], use)
    tokens = [*SPECIAL_TOKENS, *tokens, *(f"[unused{number}]" for number in range(unused))]
    return UnigramVocabulary(
        tokens,
        [scores.get(token, 0.0) for token in tokens],
        counts=[use[token] for token in tokens],
        charsmap=model.charsmap,
    )


def _normalized(counts, *, lowercase):
    """The counts of words as SentencePiece normalizes them, which may part them."""
    import sentencepiece

    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=_RULES[lowercase], add_dummy_prefix=False, escape_whitespaces=False
    )
    words = list(counts)
    normalized = Counter()
    for word, text in zip(words, normalizer.normalize(words), strict=True):
        for part in text.split(" "):
            # The mark of a space is not a character of a text, and NUL is not one of a file.
            if part and SPACE not in part and "\0" not in part:
                normalized[part] += counts[word]
    return normalized


def _trained(counts, *, size, lowercase):
    """The `SentencePieceModel` of `size` pieces that a list of (word, count) leads to."""
    import sentencepiece

    pad, unk, cls, sep, mask = SPECIAL_TOKENS
    written = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "counts.tsv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.writelines(f"{word}\t{count}\n" for word, count in counts)
        sentencepiece.SentencePieceTrainer.train(
            input=path,
            input_format="tsv",
            model_writer=written,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,  # fewer if the text has no more
            character_coverage=1.0,
            normalization_rule_name=_RULES[lowercase],
            shuffle_input_sentence=False,
            num_threads=1,  # sums of rounded numbers depend on their order
            minloglevel=2,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            pad_piece=pad,
            unk_piece=unk,
            bos_piece=cls,
            eos_piece=sep,
            control_symbols=mask,
        )
    return sp.SentencePieceModel.from_bytes(written.getvalue(), source="what was learned")


def _use(model, counts):
    """How often each piece is used in the words of a list of (word, count)."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model.to_bytes())
    use = Counter()
    rows = processor.encode([word for word, _ in counts])
    for ids, (_, count) in zip(rows, counts, strict=True):
        for id in ids:
            use[id] += count
    names = [piece.text for piece in model.pieces]
    return Counter({names[id]: count for id, count in use.items()})
