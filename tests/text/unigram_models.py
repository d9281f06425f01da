"""Small SentencePiece models, learned by the library `sentencepiece` from fuzzed texts."""

import functools
import io

import sentencepiece

from tests.text import fuzz

SENTENCES = [
    "The banks of the river are steep and the bank lends money.",
    "Die Straße ist lang, und die Häuser sind alt.",
    "Сколько стоит этот билет до Киева?",
    "東京都は日本の首都です。がぎぐげご",
    "वह हिन्दी बोलता है और किताब पढ़ता है।",
    "ไทยนี้รักสงบ แต่ถึงรบไม่ขลาด",
    "מה שלומך היום? العربية لغة جميلة",
]


@functools.cache
def model(**options):
    """The content of a model's file."""
    texts = [*SENTENCES, *fuzz.texts(300, seed=9), *fuzz.WORDS]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 2),
        model_writer=written,
        model_type="unigram",
        num_threads=1,
        minloglevel=2,
        **{
            "vocab_size": 1100,
            "hard_vocab_limit": False,
            "normalization_rule_name": "nmt_nfkc",
            **options,
        },
    )
    return written.getvalue()


def albert_model():
    """One with ALBERT's special tokens."""
    return model(
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        control_symbols="[MASK]",
    )


def bert_model():
    """One with BERT's special tokens, as DeBERTa's has them."""
    return model(
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        pad_piece="[PAD]",
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        unk_piece="[UNK]",
    )
