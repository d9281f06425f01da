"""The special tokens of OpenAI GPT's fine-tuning, for a language model that lacks them."""

import dataclasses
from typing import TYPE_CHECKING

from keras_bert.encoders.encoder import Encoder
from keras_bert.text.template import gpt_template

if TYPE_CHECKING:
    from keras_bert.text.tokenizer import Tokenizer


def with_task_tokens(encoder: Encoder, tokenizer: "Tokenizer") -> "tuple[Encoder, Tokenizer]":
    """Gives a causal language model the special tokens that a task reads its texts with.

    A model whose sequences have no special tokens, such as `openai-gpt` and `gpt2`, gets `start`,
    `delimiter` and `extract` (Radford et al. 2018, section 3.3): `<start> a <delimiter> b
    <extract>`, where a task reads the state of the last. A model without a token for padding gets
    one; its config names it, since `transformers` reads the last token that is not padding, and so
    no text may end with it. New tokens are appended to the vocabulary, and rows with random weights
    to the embedding.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`.

    Returns:
        (encoder, tokenizer): the same two, where nothing is missing or the encoder is not causal.
    """
    config, template = encoder.config, tokenizer.template
    if not config.is_causal:
        return encoder, tokenizer
    special, roles = tokenizer.special_tokens, []
    if not template.special_tokens:
        roles += [role for role in ("start", "delimiter", "extract") if not getattr(special, role)]
    if special.pad is None or special.pad in (special.eos, special.extract):
        roles.append("pad")
    names = {role: _unused(f"<{role}>", tokenizer.vocabulary) for role in roles}
    if names:
        vocabulary = tokenizer.vocabulary.with_special_tokens(**names)
        if not template.special_tokens:
            template = gpt_template(vocabulary.special_tokens)
        lowercase = tokenizer.lowercase
        tokenizer = type(tokenizer)(vocabulary, lowercase=lowercase, template=template)
    changes = {"vocab_size": max(config.vocab_size, len(tokenizer))}
    if "pad_token_id" in {field.name for field in dataclasses.fields(config)}:
        changes["pad_token_id"] = tokenizer.vocabulary.pad_id
    if dataclasses.replace(config, **changes) != config:
        encoder = encoder.rebuilt(**changes)
    return encoder, tokenizer


def _unused(name, vocabulary):
    """The name, in more brackets where the vocabulary has such a token."""
    while name in vocabulary:
        name = f"<{name}>"
    return name
