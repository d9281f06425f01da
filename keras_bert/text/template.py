"""Templates: how one or two texts become one sequence, with special tokens around them.

BERT's is `[CLS] a [SEP]` and `[CLS] a [SEP] b [SEP]`. A template is data, and alone has the offset
of each text in its sequence and the number of special tokens.
"""

import dataclasses
from functools import cached_property

from keras_bert.text.vocabulary import BERT_TOKENS

_NAMES = ("A", "B")  # of the texts in a tokenizer.json


@dataclasses.dataclass(frozen=True)
class Template:
    """The special tokens around one text (`single`) and around two (`pair`).

    Each is a tuple of parts in their order, (what, segment id): `what` is a special token, or the
    number of a text, 0 or 1. A special token belongs to the text that it follows, and those before
    the first text belong to it. All that belongs to a text has one segment id.

    Raises ValueError if a text is missing or out of order, or has several segment ids.
    """

    single: tuple[tuple[str | int, int], ...]
    pair: tuple[tuple[str | int, int], ...]

    def __post_init__(self):
        for count, parts in enumerate((self.single, self.pair), 1):
            if [part for part, _ in parts if not isinstance(part, str)] != list(range(count)):
                raise ValueError(
                    f"A template of {count} must have each text once and in order. "
                    f"Received: {parts}."
                )
            if any(len({segment for _, segment in group}) > 1 for group in self._groups(count)):
                raise ValueError(
                    "A text and the special tokens that belong to it must have one segment id. "
                    f"Received: {parts}."
                )

    def parts(self, texts):
        """The parts of a sequence of 1 or 2 `texts`."""
        return (self.single, self.pair)[texts - 1]

    @cached_property
    def special_tokens(self):
        """The different special tokens, in the order of their first occurrence."""
        tokens = [part for part, _ in (*self.single, *self.pair) if isinstance(part, str)]
        return tuple(dict.fromkeys(tokens))

    @property
    def first_token(self):
        """The special token that every sequence begins with; None if that is a text."""
        first = {parts[0][0] for parts in (self.single, self.pair)}
        return first.pop() if len(first) == 1 and first != {0} else None

    def num_special(self, texts):
        """The number of special tokens in a sequence of `texts` texts."""
        return len(self.parts(texts)) - texts

    def room(self, max_length, *, texts=1):
        """How many tokens of its texts a sequence of `max_length` tokens has room for."""
        return max_length - self.num_special(texts)

    def before(self, text, *, texts):
        """The number of special tokens before a text (0 or 1) in a sequence of `texts` texts.

        Its offset is that number plus the length of the texts before it.
        """
        return [part for part, _ in self.parts(texts)].index(text) - text

    def belonging(self, texts):
        """The number of special tokens that belong to each text of a sequence: a tuple."""
        return tuple(len(group) - 1 for group in self._groups(texts))

    def segments(self, texts):
        """The segment id of each text of a sequence, and of what belongs to it: a tuple."""
        return tuple(group[0][1] for group in self._groups(texts))

    def _groups(self, texts):
        """The parts that belong to each text."""
        groups = [[]]
        for part, segment in self.parts(texts):
            if part == 1:
                groups.append([])
            groups[-1].append((part, segment))
        return groups

    @classmethod
    def from_dict(cls, template):
        """From the result of `to_dict`; ValueError for anything else."""
        templates = []
        for name in ("single", "pair"):
            if not isinstance(template, dict) or not isinstance(template.get(name), list):
                raise ValueError(f"A template must have a list {name!r}. Received: {template!r}.")
            templates.append(tuple(map(_part_of, template[name])))
        return cls(*templates)

    def to_dict(self):
        """Returns the TemplateProcessing of a tokenizer.json."""
        return {
            name: [_as_json(part, segment) for part, segment in parts]
            for name, parts in (("single", self.single), ("pair", self.pair))
        }

    def __str__(self):
        """The sequence of two texts, as a person writes it."""
        return " ".join(part if isinstance(part, str) else "ab"[part] for part, _ in self.pair)


def _as_json(part, segment):
    if isinstance(part, str):
        return {"SpecialToken": {"id": part, "type_id": segment}}
    return {"Sequence": {"id": _NAMES[part], "type_id": segment}}


def _part_of(part):
    match part:
        case {"SpecialToken": {"id": str(token), "type_id": int(segment)}}:
            return token, segment
        case {"Sequence": {"id": "A" | "B" as text, "type_id": int(segment)}}:
            return _NAMES.index(text), segment
    raise ValueError(
        f"A part of a template must be a SpecialToken or a Sequence. Received: {part}."
    )


PLAIN_TEMPLATE = Template(single=((0, 0),), pair=((0, 0), (1, 1)))  # no special tokens


def bert_template(special_tokens):
    """BERT's `Template` with some `SpecialTokens`; a plain one if `cls` or `sep` is missing."""
    cls, sep = special_tokens.cls, special_tokens.sep
    if cls is None or sep is None:
        return PLAIN_TEMPLATE
    return Template(
        single=((cls, 0), (0, 0), (sep, 0)),
        pair=((cls, 0), (0, 0), (sep, 0), (1, 1), (sep, 1)),
    )


def gpt_template(special_tokens):
    """The `Template` of OpenAI GPT's fine-tuning (Radford et al. 2018, section 3.3).

    A sequence ends with `extract`, whose state a task reads. All is one segment.
    """
    start, delimiter, extract = (
        (token, 0)
        for token in (special_tokens.start, special_tokens.delimiter, special_tokens.extract)
    )
    return Template(
        single=(start, (0, 0), extract), pair=(start, (0, 0), delimiter, (1, 0), extract)
    )


BERT_TEMPLATE = bert_template(BERT_TOKENS)
