"""The steps of a tokenizer before its model, as data: normalizers and added tokens.

They are what a `tokenizer.json` says, in the order in which they are applied. What they do to a
text is in `keras_bert.text.encodings.steps`.
"""

import dataclasses

from keras_bert.base.errors import InputError

# Name of a normalizer -> its `type` in a tokenizer.json.
NORMALIZERS = {
    "nfc": "NFC",
    "nfd": "NFD",
    "nfkc": "NFKC",
    "nfkd": "NFKD",
    "lowercase": "Lowercase",
    "strip_accents": "StripAccents",
}
_NAMES = {type: name for name, type in NORMALIZERS.items()}
# Names of normalizers that replace a part of a text -> the type and the pattern in a
# tokenizer.json, and what is put there: ALBERT's double quotes, and DeBERTa's white space.
QUOTES = ("double_backquotes", "double_apostrophes")
REPLACEMENTS = {
    QUOTES[0]: ("String", "``", '"'),
    QUOTES[1]: ("String", "''", '"'),
    "single_spaces": ("Regex", r"\s{2,}|[\n\r\t]", " "),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedToken:
    """A token that is cut out of a text before the model reads what is left.

    A special one is cut out only if the text is a program's, as in fill-mask: in a user's text
    it is ordinary text.
    """

    content: str
    lstrip: bool = False  # takes the white space before it
    rstrip: bool = False  # takes the white space after it
    normalized: bool = False  # is looked for in the normalized text
    special: bool = False

    @classmethod
    def from_dict(cls, token, *, source):
        """From an object of `added_tokens`; `InputError` for options that are not supported."""
        if token.get("single_word"):
            raise InputError(
                f"{source} adds {token['content']!r} as a whole word only (single_word). This "
                "tokenizer does not support that."
            )
        fields = [field.name for field in dataclasses.fields(cls)][1:]
        flags = {name: bool(token.get(name, False)) for name in fields}
        return cls(content=token["content"], **flags)

    def to_tokenizers(self):
        """The `tokenizers.AddedToken`."""
        from tokenizers import AddedToken as Theirs

        fields = dataclasses.asdict(self)
        return Theirs(fields.pop("content"), **fields)


def steps_in(tokenizer, *, source):
    """The `normalizers` and `added_tokens` of a vocabulary, from the object of a `tokenizer.json`.

    {} if it has special tokens alone that take no white space: they are the vocabulary's.
    """
    normalizers = parse_normalizers(normalizer_steps(tokenizer, source=source), source=source)
    added = added_tokens_in(tokenizer, source=source)
    plain = all(token.special and not (token.lstrip or token.rstrip) for token in added)
    if plain and not normalizers:
        return {}
    return {"normalizers": normalizers, "added_tokens": added}


def added_tokens_in(tokenizer, *, source):
    """The `AddedToken`s of a `tokenizer.json`, special ones among them."""
    tokens = added_token_objects(tokenizer, source=source)
    return tuple(AddedToken.from_dict(token, source=source) for token in tokens)


def json_member(json_object, key, kind, *, source):
    """The object or list under a key; empty if the key is missing."""
    value = json_object.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        expected = {dict: "an object", list: "a list"}[kind]
        raise InputError(f"{source}: {key} should be {expected}.")
    return value


def normalizer_steps(tokenizer, *, source):
    """The objects of the normalizers in a `tokenizer.json`, a list."""
    normalizer = json_member(tokenizer, "normalizer", dict, source=source)
    parts = [normalizer] if normalizer else []
    if "normalizers" in normalizer:
        parts = json_member(normalizer, "normalizers", list, source=source)
    if not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{source}: normalizers should be a list of objects.")
    return parts


def added_token_objects(tokenizer, *, source):
    """The `added_tokens` of a `tokenizer.json`: objects, each with its `content`."""
    tokens = json_member(tokenizer, "added_tokens", list, source=source)
    for token in tokens:
        if not (isinstance(token, dict) and isinstance(token.get("content"), str)):
            raise InputError(f"{source}: added_tokens should be objects, each with its content.")
    return tokens


def parse_normalizers(steps, *, source):
    """The names of normalizers from the objects of a `tokenizer.json`: a tuple of str."""
    names = []
    for step in steps:
        if normalizer_name(step) is None:
            raise InputError(
                f"{source} normalizes texts by {step.get('type')}. Expected "
                f"{', '.join(NORMALIZERS.values())}: this tokenizer is not supported."
            )
        names.append(normalizer_name(step))
    return tuple(names)


def normalizer_name(step):
    """The name of a normalizer, an object of a `tokenizer.json`; None for another one."""
    if step.get("type") != "Replace":
        return _NAMES.get(str(step.get("type")))
    for name, (type, pattern, content) in REPLACEMENTS.items():
        if (step.get("pattern"), step.get("content")) == ({type: pattern}, content):
            return name
    return None


def normalizers_to_tokenizers(names):
    """The normalizer of `tokenizers` for these names; None for none."""
    from tokenizers import Regex, normalizers

    steps = []
    for name in names:
        if name in REPLACEMENTS:
            type, pattern, content = REPLACEMENTS[name]
            pattern = Regex(pattern) if type == "Regex" else pattern
            steps.append(normalizers.Replace(pattern, content))
        else:
            steps.append(getattr(normalizers, NORMALIZERS[name])())
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else normalizers.Sequence(steps)
