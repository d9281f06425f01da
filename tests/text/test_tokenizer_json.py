"""The `tokenizer.json` that is written gives the ids of this library in `tokenizers`."""

import json

import pytest
import tokenizers

from keras_bert.text import ByteLevelVocabulary, GptVocabulary, Tokenizer
from keras_bert.text.template import BERT_TEMPLATE, PLAIN_TEMPLATE, Template, bert_template
from keras_bert.text.vocabularies.bpe import END_OF_WORD, BpeVocabulary
from keras_bert.text.vocabularies.byte_level import LETTERS
from keras_bert.text.vocabularies.unigram import UnigramVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, SpecialTokens

MARKED = SpecialTokens(pad="[PAD]", unk="[UNK]", cls="<a:b>", sep="$A", bos="<a:b>", start="2")
TEXTS = ["The banks b", "", "İ naïve, (b)", "[CLS] the", "a\u2017b the\tbank\n東京"]
WORD_MERGES = [("t", "h"), ("th", "e"), ("b", "a")]


def tokens_of(merges, *symbols):
    return [*symbols, *(left + right for left, right in merges)]


VOCABULARIES = {
    "wordpiece": (WordPieceVocabulary([*SPECIAL_TOKENS, "the", "b", "##s", "(", ","]), True),
    "other special tokens": (
        WordPieceVocabulary(["<a:b>", "$A", "[PAD]", "[UNK]", "2", "the", "b"], None, MARKED),
        False,
    ),
    "bpe": (
        BpeVocabulary(
            tokens_of(WORD_MERGES, *SPECIAL_TOKENS, END_OF_WORD, *"thebankc(,"), WORD_MERGES
        ),
        True,
    ),
    "gpt": (
        GptVocabulary(
            tokens_of(
                [("t", "h"), ("th", "e</w>")],
                "<unk>",
                *(letter + end for letter in "thebanks(," for end in ("", "</w>")),
            ),
            [("t", "h"), ("th", "e</w>")],
            special_tokens=SpecialTokens(unk="<unk>"),
        ),
        True,
    ),
    "unigram": (
        UnigramVocabulary(
            [*SPECIAL_TOKENS, "▁", "▁the", "▁b", "ank", "s", "b", "(", ",", "na", "ï"],
            [*[0.0] * 5, -2.0, -2.5, -3.0, -3.5, -4.0, -4.5, -5.0, -5.5, -6.0, -6.5],
            normalizers=["nfkc", "lowercase"],
        ),
        True,
    ),
    "byte-level": (
        ByteLevelVocabulary(
            tokens_of([("Ġ", "t"), ("h", "e")], *SPECIAL_TOKENS, *LETTERS),
            [("Ġ", "t"), ("h", "e")],
            prefix_space=True,
        ),
        False,
    ),
}


def template_of(vocabulary):
    special = vocabulary.special_tokens
    if special.cls is None:
        return PLAIN_TEMPLATE
    if special != MARKED:
        return bert_template(special)
    return Template(  # the same token twice, and the segment of the second text
        single=((special.cls, 0), (0, 0), (special.sep, 0)),
        pair=((special.cls, 0), (0, 0), (special.sep, 0), (1, 1), (special.sep, 1), ("2", 1)),
    )


@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_and_segments_are_those_of_this_library(tmp_path, name):
    vocabulary, lowercase = VOCABULARIES[name]
    template = template_of(vocabulary)
    ours = Tokenizer(vocabulary, lowercase=lowercase, template=template)
    ours.save(tmp_path)
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert [their_tokenizer.id_to_token(id) for id in range(their_tokenizer.get_vocab_size())] == [
        *vocabulary.tokens
    ]
    texts = [text for text in TEXTS if "[CLS]" not in text]  # a special token to them
    ids = ours.tokenize(texts).to_list()
    assert [their_tokenizer.encode(text, add_special_tokens=False).ids for text in texts] == ids
    for count in (1, 2):
        expected = [
            ([vocabulary.id(part)] if isinstance(part, str) else ids[2 * part], segment)
            for part, segment in template.parts(count)
        ]
        encoding = their_tokenizer.encode(*(texts[0], texts[2])[:count])
        assert encoding.ids == [id for part, _ in expected for id in part]
        assert encoding.type_ids == [segment for part, segment in expected for _ in part]
    again = Tokenizer.from_folder(tmp_path)
    assert (again.vocabulary, again.template) == (vocabulary, template)
    assert again.special_tokens == vocabulary.special_tokens
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "tokenizer.json").read_bytes() == (
        tmp_path / "tokenizer.json"
    ).read_bytes()


def test_a_part_of_the_template_is_named_by_its_token(tmp_path):
    vocabulary, lowercase = VOCABULARIES["byte-level"]
    Tokenizer(vocabulary, lowercase=lowercase).save(tmp_path)
    written = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    assert {**BERT_TEMPLATE.to_dict()}.items() <= written["post_processor"].items()
    assert written["post_processor"]["special_tokens"].keys() == {"[CLS]", "[SEP]"}
