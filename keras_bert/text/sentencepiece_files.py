"""Vocabularies from SentencePiece files alone, with the ids of the models' own programs.

XLM-R and CamemBERT were trained with fairseq, which puts four tokens of its own before the pieces.
"""

from keras_bert.base.errors import InputError
from keras_bert.text import sentencepiece_model as sp
from keras_bert.text.normalizers import QUOTES, AddedToken
from keras_bert.text.vocabularies.unigram import UnigramVocabulary
from keras_bert.text.vocabulary import BERT_TOKENS, SpecialTokens

XLM_ROBERTA, CAMEMBERT, DEBERTA = "XLMRobertaTokenizer", "CamembertTokenizer", "DebertaV2Tokenizer"
ALBERT = "AlbertTokenizer"
FAIRSEQ_TOKENS = SpecialTokens(
    pad="<pad>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>", bos="<s>", eos="</s>"
)
ALBERT_TOKENS = SpecialTokens(
    pad="<pad>", unk="<unk>", cls="[CLS]", sep="[SEP]", mask="[MASK]", bos="[CLS]", eos="[SEP]"
)
FAIRSEQ_FILE = "sentencepiece.bpe.model"  # a unigram model, whatever its name says
# The special tokens of a class of transformers, if a folder names none.
CLASS_TOKENS = {
    XLM_ROBERTA: FAIRSEQ_TOKENS,
    CAMEMBERT: FAIRSEQ_TOKENS,
    DEBERTA: BERT_TOKENS,
    ALBERT: ALBERT_TOKENS,
}
# The tokens before the pieces, and how many pieces these stand for.
_FAIRSEQ = {
    XLM_ROBERTA: (("<s>", "<pad>", "</s>", "<unk>"), 3),
    CAMEMBERT: (("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"), 1),
}


def class_of_file(name, file, data):
    """The class of transformers that a SentencePiece file is read as; None for no such class.

    Args:
        name: the class that the folder names, or None.
        file: the name of the file.
        data: its content.
    """
    general = (None, "PreTrainedTokenizer", "TokenizersBackend")
    if name not in (*general, *CLASS_TOKENS):
        raise InputError(
            f"{file} is read for a {name}. Supported are {', '.join(CLASS_TOKENS)}. Give its "
            "tokenizer.json, too."
        )
    if name in general:
        if file.endswith(FAIRSEQ_FILE):
            return XLM_ROBERTA
        pieces = sp.SentencePieceModel.from_bytes(data, source=file).pieces
        is_albert = tokens_of_pieces({piece.text for piece in pieces}) == ALBERT_TOKENS
        return ALBERT if is_albert else None
    return name


def normalizers_of(name, config):
    """The normalizers before a file's own, by the class and the object of a tokenizer_config.json.

    ALBERT's program folds case and accents, and makes one double quote of two single ones.
    """
    if name != ALBERT:
        return ("lowercase",) if config.get("do_lower_case") is True else ()
    folds_accents = config.get("keep_accents") is not True
    lowercase = config.get("do_lower_case") is not False
    return (
        *QUOTES,
        *(("nfkd", "strip_accents") if folds_accents else ()),
        *(("lowercase",) if lowercase else ()),
    )


def tokens_of_pieces(pieces):
    """The `SpecialTokens` of a model whose class is not named, by its pieces, a set."""
    if FAIRSEQ_TOKENS.mask in pieces:
        return FAIRSEQ_TOKENS
    is_albert = {*ALBERT_TOKENS.tokens} <= pieces and BERT_TOKENS.pad not in pieces
    return ALBERT_TOKENS if is_albert else BERT_TOKENS


def vocabulary_of_model(data, *, source, name, special_tokens, normalizers):
    """The `UnigramVocabulary` of a SentencePiece file.

    Special tokens that are not pieces are appended.

    Args:
        data: its content.
        source: the file, for errors.
        name: as `class_of_file` returns it.
        special_tokens: `SpecialTokens`.
        normalizers: as for `UnigramVocabulary`.
    """
    model = sp.SentencePieceModel.from_bytes(data, source=source)
    first, replaced = _FAIRSEQ.get(name, ((), 0))
    pieces = [*(sp.Piece(token, 0.0, sp.CONTROL) for token in first), *model.pieces[replaced:]]
    texts = {piece.text for piece in pieces}
    missing = [token for token in special_tokens.tokens if token not in texts]
    pieces += [sp.Piece(token, 0.0, sp.CONTROL) for token in missing]
    added = [AddedToken(content=p.text) for p in model.pieces if p.type == sp.USER_DEFINED]
    if special_tokens.mask is not None:  # as transformers adds it
        lstrip = special_tokens == FAIRSEQ_TOKENS
        added.append(AddedToken(content=special_tokens.mask, lstrip=lstrip, special=True))
    scores = [piece.score if piece.type == sp.NORMAL else 0.0 for piece in pieces]
    return UnigramVocabulary(
        [piece.text for piece in pieces],
        scores,
        special_tokens=special_tokens,
        charsmap=model.charsmap,
        prefix_space=model.prefix_space,
        removes_spaces=model.removes_spaces,
        byte_fallback=model.byte_fallback,
        normalizers=normalizers,
        added_tokens=added,
    )
