"""The unigram model (Kudo 2018) of SentencePiece: pieces with probabilities, white space included.

XLM-R, CamemBERT and DeBERTa-v3 have one. Of all ways to split a text into pieces, the most probable
one is taken.
"""

import base64
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.text import sentencepiece_model as sp
from keras_bert.text.normalizers import (
    NORMALIZERS,
    AddedToken,
    added_token_objects,
    added_tokens_in,
    json_member,
    normalizer_name,
    normalizer_steps,
    normalizers_to_tokenizers,
    parse_normalizers,
)
from keras_bert.text.template import bert_template
from keras_bert.text.tokenizer_json import tokenizer_json
from keras_bert.text.vocabularies.spaced import SpacedVocabulary
from keras_bert.text.vocabulary import BERT_TOKENS, TOKENIZER_FILE, SpecialTokens, tokens_by_id

SPACE = "\u2581"  # in a piece, a space before a word
# SentencePiece builds its trie by recursion over the bytes of a token: its stack ends at 300,000.
_MAX_TOKEN_BYTES = 65_536
# How `tokenizers` leaves out the spaces that SentencePiece does: pattern -> what is put there.
_REMOVED = {"^ +| +$": "", " {2,}": " "}


class UnigramVocabulary(SpacedVocabulary):
    """The vocabulary of a unigram model.

    A piece that begins with U+2581 ("▁") begins a word. Characters that no piece has are unknown.

    Args:
        tokens: strings in the order of their ids, the special ones among them, each once.
        scores: the logarithm of the probability of each token; 0 for tokens that no text has.
        counts: as for `Vocabulary`.
        special_tokens: `SpecialTokens`; `unk` is required.
        charsmap: the compiled rules by which SentencePiece normalizes a text; b"" for none.
        prefix_space: whether a text is read with a space before it.
        removes_spaces: whether white space at both ends of a text, and all but one between words,
            is left out.
        byte_fallback: whether unknown characters become tokens of bytes, "<0x00>" to "<0xFF>".
        normalizers: names of `keras_bert.text.normalizers.NORMALIZERS`, applied before the
            charsmap.
        added_tokens: `AddedToken`s. Those that are not special are found before all others.

    Raises `InputError` for tokens and scores that are not a unigram model.
    """

    algorithm = "unigram"
    DESCRIPTION = "a unigram model"
    ENCODING = "keras_bert.text.encodings.unigram:Unigram"
    FILES = (TOKENIZER_FILE,)
    UNKNOWN = None
    ONE_LINE = False

    def __init__(
        self,
        tokens: Sequence[str],
        scores: Any,
        counts: Any = None,
        special_tokens: SpecialTokens = BERT_TOKENS,
        *,
        charsmap: bytes = b"",
        prefix_space: bool = True,
        removes_spaces: bool = True,
        byte_fallback: bool = False,
        normalizers: Sequence[str] = (),
        added_tokens: Sequence[AddedToken] = (),
    ):
        super().__init__(tokens, counts=counts, special_tokens=special_tokens)
        self.scores = np.asarray(scores, np.float32)
        if self.scores.shape != (len(self.tokens),) or not np.isfinite(self.scores).all():
            raise InputError("A unigram model needs one finite score for each of its tokens.")
        if not special_tokens.unk:
            raise InputError("A unigram model needs a token for unknown characters (unk).")
        longest = max(self.tokens, key=len, default="")
        if (size := len(longest.encode("utf-8", errors="ignore"))) > _MAX_TOKEN_BYTES:
            raise InputError(
                f"A unigram model has a token of {size:,} bytes, with the id "
                f"{self.id(longest)}; {_MAX_TOKEN_BYTES:,} are possible."
            )
        self.charsmap, self.byte_fallback = charsmap, byte_fallback
        self.prefix_space, self.removes_spaces = prefix_space, removes_spaces
        self.normalizers, self.added_tokens = tuple(normalizers), tuple(added_tokens)
        try:
            folds = sp.mapped(charsmap, "A") == "a"
        except Exception:  # whatever a damaged trie leads to
            raise InputError("The compiled rules of normalization are damaged.") from None
        self.lowercase = folds or "lowercase" in self.normalizers

    @classmethod
    def from_tokenizer(
        cls, tokenizer: dict[str, Any], *, source: str, special_tokens: SpecialTokens
    ) -> Self:
        """From the object of a `tokenizer.json`, of which the model is a unigram one.

        `source` is its file, for errors.
        """
        ids = unigram_ids(tokenizer, source=source)
        tokens = tokens_by_id(ids, source=source, special_tokens=special_tokens)
        model = json_member(tokenizer, "model", dict, source=source)
        scores: Any = dict(json_member(model, "vocab", list, source=source))
        scores = [scores.get(token, 0.0) for token in tokens]
        options = cls.options_of(tokenizer, source=source)
        options["byte_fallback"] = model.get("byte_fallback") is True
        try:
            return cls(tokens, scores, special_tokens=special_tokens, **options)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    def options_of(cls, tokenizer: dict[str, Any], *, source: str) -> dict[str, Any]:
        steps = normalizer_steps(tokenizer, source=source)
        names = [step.get("type") for step in steps]
        named = [step for step in steps if normalizer_name(step) is not None]
        charsmap = b""
        if "Precompiled" in names:
            encoded = steps[names.index("Precompiled")].get("precompiled_charsmap")
            try:
                charsmap = base64.b64decode(encoded or "", validate=True)
            except (TypeError, ValueError):
                raise InputError(f"{source}: precompiled_charsmap should be base64.") from None
        spaces = _space_steps(tokenizer, source=source)
        removing = [step for step in steps if _removes_spaces(step)]
        expected = [*named, *(step for step in steps if step.get("type") == "Precompiled")]
        others = [step for step in steps if step not in removing]
        if others != expected or names.count("Precompiled") > 1:
            raise InputError(
                f"{source} normalizes texts by {', '.join(map(str, names))}. Expected Precompiled, "
                f"after any of {', '.join(NORMALIZERS.values())}, and what takes out white space: "
                "this tokenizer is not supported."
            )
        added = added_tokens_in(tokenizer, source=source)
        return {
            "charsmap": charsmap,
            "prefix_space": spaces[-1].get("prepend_scheme", "always") != "never"
            and spaces[-1].get("add_prefix_space") is not False,
            "removes_spaces": bool(removing) or len(spaces) > 1,
            "normalizers": parse_normalizers(named, source=source),
            "added_tokens": tuple(added),
        }

    def files(self) -> dict[str, str]:
        template = bert_template(self.special_tokens)
        return {TOKENIZER_FILE: tokenizer_json(self, lowercase=self.lowercase, template=template)}

    def config_options(self, *, lowercase: bool) -> dict[str, Any]:
        return {"do_lower_case": lowercase, "add_prefix_space": self.prefix_space}

    def to_tokenizers(self, *, lowercase: bool) -> Any:
        """Returns the tokenizer as `Vocabulary.to_tokenizers`.

        If two segmentations are equally probable it may take the other one, and it normalizes
        some combining marks otherwise (`docs/moving_from_transformers.md` has the numbers).
        """
        from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

        model = models.Unigram(
            list(zip(self.tokens, self.scores.tolist(), strict=True)),
            unk_id=self.unk_id,
            byte_fallback=self.byte_fallback,
        )
        tokenizer = Tokenizer(model)
        steps = [normalizers_to_tokenizers(self.normalizers)] if self.normalizers else []
        if self.charsmap:
            steps.append(normalizers.Precompiled(self.charsmap))
        if self.removes_spaces:
            # (Strip takes off more than SentencePiece's spaces.)
            steps += [normalizers.Replace(Regex(pattern), new) for pattern, new in _REMOVED.items()]
        if steps:
            tokenizer.normalizer = normalizers.Sequence(steps)
        scheme = "always" if self.prefix_space else "never"
        splits = not any(SPACE in token[1:] for token in self.tokens)
        spaces: dict[str, Any] = {"replacement": SPACE, "prepend_scheme": scheme, "split": splits}
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**spaces)
        tokenizer.decoder = decoders.Metaspace(**spaces)
        return tokenizer

    @cached_property
    def contents(self) -> list[bytes | None]:
        special = set(self.special_ids.tolist())
        return [
            None if id in special else token.replace(SPACE, " ").encode("utf-8")
            for id, token in enumerate(self.tokens)
        ]

    def join(self, ids: Sequence[int]) -> str:
        text = super().join(ids)
        return text.removeprefix(" ") if self.prefix_space else text

    def to_sentencepiece(self) -> sp.SentencePieceModel:
        """The `SentencePieceModel` in which the number of a piece is the id of its token."""
        user_defined = {token.content for token in self.added_tokens if not token.special}
        special = {*self.special_ids.tolist()}
        pieces = []
        for id, (token, score) in enumerate(zip(self.tokens, self.scores.tolist(), strict=True)):
            if token == self.special_tokens.unk:
                type = sp.UNKNOWN
            elif token in user_defined:
                type = sp.USER_DEFINED
            elif self.byte_fallback and _is_byte(token):
                type = sp.BYTE
            else:
                type = sp.CONTROL if id in special or score == 0 else sp.NORMAL
            pieces.append(sp.Piece(token, score, type))
        return sp.SentencePieceModel(
            pieces=tuple(pieces),
            charsmap=self.charsmap,
            prefix_space=self.prefix_space,
            removes_spaces=self.removes_spaces,
            byte_fallback=self.byte_fallback,
        )

    def needed_with(self, ids: Iterable[int]) -> set[int]:
        """Also the characters of the tokens, tokens of bytes, and the least probable token.

        A character without a token of its own, and the least score, decide what unknown
        characters cost.
        """
        needed = super().needed_with(ids)
        pieces = self.to_sentencepiece().pieces
        normal = [id for id, piece in enumerate(pieces) if piece.type == sp.NORMAL]
        needed.update(id for id, piece in enumerate(pieces) if piece.type == sp.BYTE)
        needed.update(sorted(normal, key=lambda id: pieces[id].score)[:1])
        letters = {c for id in needed.intersection(normal) for c in self.tokens[id]}
        return needed | {self.id(letter) for letter in letters if letter in self}

    def _options_of(self, ids):
        return {**super()._options_of(ids), "scores": self.scores[ids]}

    def _options(self, more=0):
        names = ("charsmap", "prefix_space", "removes_spaces", "byte_fallback")
        names += ("normalizers", "added_tokens")
        scores = np.append(self.scores, [0.0] * more)
        return {"scores": scores, **{name: getattr(self, name) for name in names}}

    def _identity(self):
        flags = (self.prefix_space, self.removes_spaces, self.byte_fallback)
        return [
            *self.tokens,
            *map(str, self.scores.tolist()),
            self.charsmap.hex(),
            *map(str, flags),
            *self._steps_identity(),
        ]


def unigram_ids(tokenizer, *, source):
    """Token -> id in a `tokenizer.json` whose model is a unigram one, added tokens among them."""
    pairs = json_member(
        json_member(tokenizer, "model", dict, source=source), "vocab", list, source=source
    )
    for pair in pairs:
        is_pair = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
        if not is_pair or not isinstance(pair[1], int | float):
            raise InputError(
                f"{source}: the vocab of a unigram model should be a list of tokens and scores."
            )
    added = added_token_objects(tokenizer, source=source)
    ids = {token: id for id, (token, _) in enumerate(pairs)}
    return ids | {token["content"]: token.get("id") for token in added}


def _space_steps(tokenizer, *, source):
    """The steps that split a text at white space, of which the last is Metaspace."""
    splitter = json_member(tokenizer, "pre_tokenizer", dict, source=source)
    steps = [splitter]
    if splitter.get("type") == "Sequence":
        steps = json_member(splitter, "pretokenizers", list, source=source)
    names = [step.get("type") if isinstance(step, dict) else step for step in steps]
    if names not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]) or (
        steps[-1].get("replacement") != SPACE
    ):
        raise InputError(
            f"{source} splits texts by {', '.join(map(str, names))}. Expected Metaspace with "
            f"{SPACE!r}: this tokenizer is not supported."
        )
    return steps


def _removes_spaces(step):
    """Whether a normalizer takes off spaces, or makes one of several."""
    if step.get("type") != "Replace":
        return step.get("type") == "Strip"
    pattern = step.get("pattern")
    pattern = pattern.get("Regex") if isinstance(pattern, dict) else None
    content = str(step.get("content")).replace(SPACE, " ")
    return content == _REMOVED.get(str(pattern))


def _is_byte(token):
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")
