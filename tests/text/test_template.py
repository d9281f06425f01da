"""Templates: their laws, what a tokenizer.json says of them, and what `tokenizers` makes of it."""

import json
import pickle

import pytest
import tokenizers
from tokenizers.processors import BertProcessing, ByteLevel, RobertaProcessing, TemplateProcessing
from tokenizers.processors import Sequence as Steps

from keras_bert.checkpoints.google import check_wordpiece
from keras_bert.inputs.framing import frame
from keras_bert.records.masking import Masker
from keras_bert.text import Tokenizer
from keras_bert.text.hugging_face import TokenizerFolder
from keras_bert.text.template import BERT_TEMPLATE, PLAIN_TEMPLATE, Template, bert_template
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, SpecialTokens
from keras_bert.text.vocabulary_files import load_vocabulary
from tests.messages import raises_input_error
from tests.peers import transformers

VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *"abcdef"])
CLS, SEP, MASK = (("[CLS]", 2), ("[SEP]", 3), ("[MASK]", 4))
GPT = Template(
    single=(("[CLS]", 0), (0, 0), ("[MASK]", 0)),
    pair=(("[CLS]", 0), (0, 0), ("[SEP]", 0), (1, 0), ("[MASK]", 0)),
)
PROCESSORS = {
    "bert": BertProcessing(SEP, CLS),
    "roberta": RobertaProcessing(SEP, CLS),
    "template": TemplateProcessing(
        single="[CLS] $A [MASK]", pair="[CLS] $A [SEP] $B [MASK]", special_tokens=[CLS, SEP, MASK]
    ),
    "two tokens of one name": TemplateProcessing(
        single="start $A",
        pair="start $A:0 [SEP]:0 $B:1 start:1",
        special_tokens=[{"id": "start", "ids": [2, 4], "tokens": ["[CLS]", "[MASK]"]}, SEP],
    ),
    "no special tokens": ByteLevel(),
    "last of several": Steps([ByteLevel(), RobertaProcessing(SEP, CLS)]),
}


def read(processor, **config):
    tokenizer = {"post_processor": processor and json.loads(processor.__getstate__())}
    return template_of(tokenizer, VOCABULARY, **config)


def template_of(tokenizer, vocabulary, **config):
    folder = TokenizerFolder("folder", config=config, tokenizer=tokenizer, added={})
    return folder.template(vocabulary)


def ids_of(template, *texts):
    """The ids and segment ids of a row, as the template has it."""
    parts = [
        ([VOCABULARY.id(part)] if isinstance(part, str) else texts[part], segment)
        for part, segment in template.parts(len(texts))
    ]
    return [id for part, _ in parts for id in part], [s for part, s in parts for _ in part]


@pytest.mark.parametrize("processor", PROCESSORS.values(), ids=PROCESSORS)
def test_rows_are_those_of_the_tokenizers_library(processor):
    their_tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({p: i for i, p in enumerate(VOCABULARY.tokens)}, "[UNK]")
    )
    their_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    their_tokenizer.post_processor = processor
    template = read(processor)
    for texts in (["a b c"], ["a"], ["a b c", "d e"], ["a", "b"]):
        encoding = their_tokenizer.encode(*texts)
        sequences = [[VOCABULARY.id(word) for word in text.split()] for text in texts]
        ids, segments = ids_of(template, *sequences)
        assert (encoding.ids, encoding.type_ids) == (ids, segments)


@pytest.mark.parametrize(
    "template", [BERT_TEMPLATE, PLAIN_TEMPLATE, GPT, *map(read, PROCESSORS.values())]
)
def test_numbers_and_places_are_those_of_the_parts(template):
    for texts in (1, 2):
        sequences = [[5] * 3, [6] * 4][:texts]
        ids, _ = ids_of(template, *sequences)
        tokens = sum(map(len, sequences))
        assert len(ids) == tokens + template.num_special(texts)
        assert template.room(len(ids), texts=texts) == tokens
        assert sum(template.belonging(texts)) == template.num_special(texts)
        assert ids.index(5) == template.before(0, texts=texts)
        if texts == 2:
            assert ids.index(6) == template.before(1, texts=2) + 3
        if template.first_token is not None:
            assert ids[0] == VOCABULARY.id(template.first_token)
        assert {VOCABULARY.tokens[id] for id in ids} - {"a", "b"} <= set(template.special_tokens)
    assert Template.from_dict(json.loads(json.dumps(template.to_dict()))) == template


def test_what_is_not_said_is_berts():
    assert template_of({}, VOCABULARY) == BERT_TEMPLATE
    assert read(None) == BERT_TEMPLATE
    assert read(PROCESSORS["bert"]) == BERT_TEMPLATE
    # The class has a template of its own, whatever its tokenizer.json says.
    assert read(PROCESSORS["roberta"], tokenizer_class="BertTokenizer") == BERT_TEMPLATE
    assert str(template_of({}, OTHER)) == "<s> a </s> b </s>"
    assert str(BERT_TEMPLATE) == "[CLS] a [SEP] b [SEP]"


@pytest.mark.parametrize(
    "processor, message",
    [
        (BertProcessing(SEP, ("[CLS]", 7)), "'[CLS]' with the id 7"),
        (BertProcessing(SEP, ("a", 5)), "'a' with the id 5"),
        (TemplateProcessing(single="$A", pair="$B $A", special_tokens=[]), "in order"),
        (TemplateProcessing(single="$A:0 [CLS]:2", pair="$A $B", special_tokens=[CLS]), "segment"),
    ],
)
def test_a_template_that_is_not_known_is_rejected(processor, message):
    with raises_input_error(f"folder/tokenizer.json: post_processor ...{message}"):
        read(processor)


@pytest.mark.peers
@pytest.mark.parametrize("template", [PLAIN_TEMPLATE, GPT])
def test_a_folder_keeps_the_template_and_transformers_has_the_same_ids(tmp_path, template):
    tokenizer = Tokenizer(VOCABULARY, lowercase=True, template=template)
    tokenizer.save(tmp_path)
    assert Tokenizer.from_folder(tmp_path).template == template
    assert Tokenizer.from_vocab(tmp_path).template == template
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for texts in (["A b"], ["c", "d E"]):
        sequences = tokenizer.tokenize(texts).to_list()
        assert their_tokenizer(*texts)["input_ids"] == ids_of(template, *sequences)[0]
    Tokenizer(VOCABULARY, lowercase=True).save(tmp_path, overwrite=True)
    assert Tokenizer.from_folder(tmp_path).template == BERT_TEMPLATE


OTHERS = SpecialTokens(pad="<pad>", unk="[UNK]", cls="<s>", sep="</s>", bos="<s>", start="<start>")
OTHER = WordPieceVocabulary(
    ["<s>", "<pad>", "</s>", "[UNK]", "<start>", "[MASK]", *"abc", "##b"], special_tokens=OTHERS
)


def test_special_tokens_have_any_name_and_may_be_missing(tmp_path):
    assert (OTHER.pad_id, OTHER.cls_id, OTHER.sep_id, OTHER.unk_id) == (1, 0, 2, 3)
    assert OTHER.mask_id is None and OTHER.special_ids.tolist() == [0, 1, 2, 3, 4]
    assert OTHER != WordPieceVocabulary(OTHER.tokens, special_tokens=SpecialTokens(unk="[UNK]"))
    with raises_input_error("mask token"):
        Masker(vocabulary=OTHER, unit="token", rate=0.15, max_predictions=5)
    assert pickle.loads(pickle.dumps(OTHER)).special_tokens == OTHERS
    tokenizer = Tokenizer(OTHER, lowercase=True, template=PLAIN_TEMPLATE)
    tokenizer.save(tmp_path)
    loaded = Tokenizer.from_folder(tmp_path)
    assert loaded.special_tokens == OTHERS and loaded.vocabulary == OTHER
    assert load_vocabulary(tmp_path) == OTHER
    assert loaded.tokenize(["ab <s> c"]).to_list() == tokenizer.tokenize(["ab <s> c"]).to_list()
    assert SpecialTokens.from_dict(OTHERS.to_dict()) == OTHERS


def test_formats_for_bert_alone_reject_other_templates():
    check_wordpiece(Tokenizer(VOCABULARY, lowercase=True), needed_by="x")
    for tokenizer in (
        Tokenizer(VOCABULARY, lowercase=True, template=GPT),
        Tokenizer(OTHER, lowercase=True, template=bert_template(OTHERS)),
    ):
        with raises_input_error("x needs BERT's special tokens"):
            check_wordpiece(tokenizer, needed_by="x")


@pytest.mark.peers
def test_roberta_pairs_are_those_of_transformers(tmp_path):
    """A WordPiece of RoBERTa's special tokens, as MPNet has it."""
    processor = json.loads(RobertaProcessing(("</s>", 2), ("<s>", 0)).__getstate__())
    template = template_of({"post_processor": processor}, OTHER)
    tokenizer = Tokenizer(OTHER, lowercase=True, template=template)
    tokenizer.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(content | {"post_processor": processor}))
    assert Tokenizer.from_folder(tmp_path).template == template
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert (their_tokenizer.pad_token_id, their_tokenizer.mask_token) == (1, None)
    texts = ["ab a", "c"], ["b", "a c ab"]
    inputs = frame(
        [tokenizer.tokenize(column) for column in texts],
        tokenizer=tokenizer,
        names=("input_ids", "input_mask", "segment_ids"),
        max_length=16,
    )
    encoding = their_tokenizer(*map(list, texts), padding=True, return_token_type_ids=True)
    names = ("input_ids", "attention_mask", "token_type_ids")
    for name, tensor in zip(names, inputs.values(), strict=True):
        assert tensor.numpy().tolist() == encoding[name]
    assert inputs["input_ids"].numpy()[1].tolist() == [0, 8, 2, 2, 6, 8, 6, 9, 2]
