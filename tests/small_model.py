"""A tokenizer and an encoder small enough to make in a moment, for tests of what stands on them."""

import string

import keras

from keras_bert.encoders import config_class, new_encoder
from keras_bert.text.template import Template
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, SpecialTokens
from tests.seeds import shifted

LETTERS = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]


def make_tokenizer(words=()):
    """Knows these words, punctuation, and every other word by its letters."""
    return Tokenizer.from_vocab(
        WordPieceVocabulary([*SPECIAL_TOKENS, *LETTERS, *string.punctuation, *words])
    )


def make_mpnet_tokenizer(words=()):
    """The same with MPNet's special tokens and template."""
    special = SpecialTokens(
        pad="<pad>", unk="[UNK]", cls="<s>", sep="</s>", mask="<mask>", bos="<s>", eos="</s>"
    )
    tokens = ["<s>", "<pad>", "</s>", "[UNK]", *LETTERS, *string.punctuation, *words, "<mask>"]
    single = (("<s>", 0), (0, 0), ("</s>", 0))
    return Tokenizer(
        WordPieceVocabulary(tokens, special_tokens=special),
        lowercase=True,
        template=Template(single=single, pair=(*single, ("</s>", 0), (1, 0), ("</s>", 0))),
    )


def make_encoder(tokenizer, *, pooler=True, seed=None, **changes):
    """The same random weights in every call; large ones, so that texts differ.

    With a `pooler` if it can have one, or as a masked LM leaves it. A `seed` does not move with
    `--shift-seeds`: for a run that is known to learn from these weights.
    """
    keras.utils.set_random_seed(shifted(5) if seed is None else seed)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 40,
        "initializer_range": 0.3,
    }
    config = config_class(changes.get("model_type", "bert"))
    encoder = new_encoder(config(**{**sizes, **changes}))
    encoder.came_with_pooler = pooler
    if pooler and encoder.POOLER_ACTIVATION is not None:
        encoder.new_pooler()
    return encoder


def encode(encoder, inputs, *more):
    """The outputs by name of an encoder for those of `inputs` that it takes.

    They are `sequence_output`, `pooled_output` if there is a pooler, and any `more`.
    """
    names = ("sequence_output", *more)
    inputs = {name: inputs[name] for name in encoder.input_names}
    states = encoder(inputs, outputs=(*names, "first_output"))
    if encoder.pooler is not None:
        states["pooled_output"] = encoder.pooler(states["first_output"])
    return {name: x for name, x in states.items() if name != "first_output"}
