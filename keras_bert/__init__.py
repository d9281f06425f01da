"""keras-bert: from raw text to a served language model.

Importing this package loads nothing heavy: a name brings its module in when it is first used, so
that `keras-bert --help` answers at once and the model code can be used without TensorFlow. Type
checkers and editors follow the imports at the end.
"""

from typing import TYPE_CHECKING

from keras_bert.base import lazy_names
from keras_bert.base.start_up import hide_start_up_logs
from keras_bert.base.version import __version__ as __version__

hide_start_up_logs()  # before TensorFlow is imported

# The module of each public name.
_HOMES = {
    name: module
    for module, names in {
        "keras_bert.base.errors": "InputError",
        "keras_bert.encoders.bert": "BertConfig",
        "keras_bert.encoders.bert.encoder": "BertEncoder",
        "keras_bert.encoders.roberta": "RobertaConfig",
        "keras_bert.encoders.roberta.encoder": "RobertaEncoder",
        "keras_bert.encoders.distilbert": "DistilBertConfig",
        "keras_bert.encoders.distilbert.encoder": "DistilBertEncoder",
        "keras_bert.encoders.electra": "ElectraConfig",
        "keras_bert.encoders.electra.encoder": "ElectraEncoder",
        "keras_bert.encoders.mpnet": "MPNetConfig",
        "keras_bert.encoders.mpnet.encoder": "MPNetEncoder",
        "keras_bert.encoders.albert": "AlbertConfig",
        "keras_bert.encoders.albert.encoder": "AlbertEncoder",
        "keras_bert.encoders.deberta": "DebertaConfig",
        "keras_bert.encoders.deberta.encoder": "DebertaEncoder",
        "keras_bert.encoders.modernbert": "ModernBertConfig",
        "keras_bert.encoders.modernbert.encoder": "ModernBertEncoder",
        "keras_bert.encoders.gpt": "OpenAIGptConfig Gpt2Config",
        "keras_bert.encoders.gpt.encoder": "GptEncoder",
        "keras_bert.encoders.bilm": "BilmConfig",
        "keras_bert.encoders.bilm.encoder": "BilmEncoder",
        "keras_bert.encoders.lstm": "AwdLstmConfig",
        "keras_bert.encoders.lstm.encoder": "AwdLstmEncoder",
        "keras_bert.text.vocabulary": "Vocabulary",
        "keras_bert.text.vocabularies.wordpiece": "WordPieceVocabulary",
        "keras_bert.text.vocabularies.bpe": "BpeVocabulary GptVocabulary",
        "keras_bert.text.vocabularies.byte_level": "ByteLevelVocabulary",
        "keras_bert.text.vocabularies.unigram": "UnigramVocabulary",
        "keras_bert.text.vocabulary_files": "load_vocabulary",
        "keras_bert.text.tokenizer": "Tokenizer",
        "keras_bert.tasks.pretraining.pretrainer": "FillMask Pretrainer SpanPretrainer "
        "SentenceOrderPretrainer",
        "keras_bert.tasks.pretraining.language_models": "CausalLM MaskedCausalLM BidirectionalLM",
        "keras_bert.tasks.pretraining.static_vectors": "SkipGram Cbow",
        "keras_bert.tasks.pretraining.replaced_tokens": "ReplacedTokenPretrainer",
        "keras_bert.encoders.static": "StaticConfig",
        "keras_bert.encoders.static.encoder": "StaticEncoder",
        "keras_bert.tasks.classification.classifier": "Classifier PairClassifier",
        "keras_bert.tasks.classification.regressor": "Regressor",
        "keras_bert.tasks.multiple_choice.multiple_choice": "MultipleChoice",
        "keras_bert.tasks.tagging.tagger": "Tagger",
        "keras_bert.tasks.tagging.semantic_role_tagger": "SemanticRoleTagger",
        "keras_bert.tasks.question_answering.question_answerer": "QuestionAnswerer",
        "keras_bert.tasks.span_classification.span_classifier": "SpanClassifier",
        "keras_bert.tasks.span_classification.relation_classifier": "RelationClassifier",
        "keras_bert.tasks.coreference.coreference_resolver": "CoreferenceResolver",
        "keras_bert.tasks.text_embedding.text_embedder": "TextEmbedder",
        "keras_bert.heads.reader": "ScalarMix",
        "keras_bert.checkpoints.loading": "load load_task with_task_tokens",
        "keras_bert.training.pretrain": "pretrain",
        "keras_bert.training.finetune": "finetune sweep",
        "keras_bert.training.distill": "distill",
        "keras_bert.training.glue": "glue",
        "keras_bert.inference.evaluate": "evaluate",
        "keras_bert.inference.predict": "predict",
        "keras_bert.inference.compare": "compare",
        "keras_bert.inference.zero_shot": "zero_shot",
        "keras_bert.inference.embed": "embed",
        "keras_bert.inference.embed_to_file": "embed_to_file",
        "keras_bert.inference.fill_mask": "fill_mask follows",
        "keras_bert.inference.surprisal": "surprisal pseudo_perplexity",
        "keras_bert.inference.generate": "generate next_tokens log_probability",
        "keras_bert.inference.senses": "senses SenseVectors word_similarity",
        "keras_bert.inference.nearest": "nearest WordVectors",
        "keras_bert.search.index": "Index load_index",
        "keras_bert.search.mining": "mine_negatives",
        "keras_bert.exports.saved_model": "export",
        "keras_bert.checkpoints.convert": "convert push",
        "keras_bert.serving.serve": "serve BackgroundServer",
        "keras_bert.serving.ask": "ask",
        "data_gen.inference": "predict_files embed_files index_files",
        "data_gen.vocabulary": "learn_vocabulary",
        "data_gen.pretraining_data": "pretraining_data",
        "keras_bert.records.inspection": "inspect",
        "keras_bert.pictures.tokens": "draw_attention draw_surprisal",
        "keras_bert.pictures.words": "draw_contexts draw_similarity",
        "keras_bert.pictures.texts": "draw_texts",
        "keras_bert.pictures.run": "draw_run",
        "keras_bert.pictures.predictions": "show_predictions",
        "keras_bert.pictures.comparison": "draw_comparison",
        "keras_bert.diagnosis": "diagnose",
        "keras_bert.samples.quickstart": "quickstart",
    }.items()
    for name in names.split()
}

__all__ = sorted(_HOMES)
if TYPE_CHECKING:
    import keras_bert.sklearn  # noqa: F401
    from data_gen.inference import embed_files as embed_files
    from data_gen.inference import index_files as index_files
    from data_gen.inference import predict_files as predict_files
    from data_gen.pretraining_data import pretraining_data as pretraining_data
    from data_gen.vocabulary import learn_vocabulary as learn_vocabulary
    from keras_bert.base.errors import InputError as InputError
    from keras_bert.checkpoints.convert import convert as convert
    from keras_bert.checkpoints.convert import push as push
    from keras_bert.checkpoints.loading import load as load
    from keras_bert.checkpoints.loading import load_task as load_task
    from keras_bert.checkpoints.loading import with_task_tokens as with_task_tokens
    from keras_bert.diagnosis import diagnose as diagnose
    from keras_bert.encoders.albert import AlbertConfig as AlbertConfig
    from keras_bert.encoders.albert.encoder import AlbertEncoder as AlbertEncoder
    from keras_bert.encoders.bert import BertConfig as BertConfig
    from keras_bert.encoders.bert.encoder import BertEncoder as BertEncoder
    from keras_bert.encoders.bilm import BilmConfig as BilmConfig
    from keras_bert.encoders.bilm.encoder import BilmEncoder as BilmEncoder
    from keras_bert.encoders.deberta import DebertaConfig as DebertaConfig
    from keras_bert.encoders.deberta.encoder import DebertaEncoder as DebertaEncoder
    from keras_bert.encoders.distilbert import DistilBertConfig as DistilBertConfig
    from keras_bert.encoders.distilbert.encoder import DistilBertEncoder as DistilBertEncoder
    from keras_bert.encoders.electra import ElectraConfig as ElectraConfig
    from keras_bert.encoders.electra.encoder import ElectraEncoder as ElectraEncoder
    from keras_bert.encoders.gpt import Gpt2Config as Gpt2Config
    from keras_bert.encoders.gpt import OpenAIGptConfig as OpenAIGptConfig
    from keras_bert.encoders.gpt.encoder import GptEncoder as GptEncoder
    from keras_bert.encoders.lstm import AwdLstmConfig as AwdLstmConfig
    from keras_bert.encoders.lstm.encoder import AwdLstmEncoder as AwdLstmEncoder
    from keras_bert.encoders.modernbert import ModernBertConfig as ModernBertConfig
    from keras_bert.encoders.modernbert.encoder import ModernBertEncoder as ModernBertEncoder
    from keras_bert.encoders.mpnet import MPNetConfig as MPNetConfig
    from keras_bert.encoders.mpnet.encoder import MPNetEncoder as MPNetEncoder
    from keras_bert.encoders.roberta import RobertaConfig as RobertaConfig
    from keras_bert.encoders.roberta.encoder import RobertaEncoder as RobertaEncoder
    from keras_bert.encoders.static import StaticConfig as StaticConfig
    from keras_bert.encoders.static.encoder import StaticEncoder as StaticEncoder
    from keras_bert.exports.saved_model import export as export
    from keras_bert.heads.reader import ScalarMix as ScalarMix
    from keras_bert.inference.compare import compare as compare
    from keras_bert.inference.embed import embed as embed
    from keras_bert.inference.embed_to_file import embed_to_file as embed_to_file
    from keras_bert.inference.evaluate import evaluate as evaluate
    from keras_bert.inference.fill_mask import fill_mask as fill_mask
    from keras_bert.inference.fill_mask import follows as follows
    from keras_bert.inference.generate import generate as generate
    from keras_bert.inference.generate import log_probability as log_probability
    from keras_bert.inference.generate import next_tokens as next_tokens
    from keras_bert.inference.nearest import WordVectors as WordVectors
    from keras_bert.inference.nearest import nearest as nearest
    from keras_bert.inference.predict import predict as predict
    from keras_bert.inference.senses import SenseVectors as SenseVectors
    from keras_bert.inference.senses import senses as senses
    from keras_bert.inference.senses import word_similarity as word_similarity
    from keras_bert.inference.surprisal import pseudo_perplexity as pseudo_perplexity
    from keras_bert.inference.surprisal import surprisal as surprisal
    from keras_bert.inference.zero_shot import zero_shot as zero_shot
    from keras_bert.pictures.comparison import draw_comparison as draw_comparison
    from keras_bert.pictures.predictions import show_predictions as show_predictions
    from keras_bert.pictures.run import draw_run as draw_run
    from keras_bert.pictures.texts import draw_texts as draw_texts
    from keras_bert.pictures.tokens import draw_attention as draw_attention
    from keras_bert.pictures.tokens import draw_surprisal as draw_surprisal
    from keras_bert.pictures.words import draw_contexts as draw_contexts
    from keras_bert.pictures.words import draw_similarity as draw_similarity
    from keras_bert.records.inspection import inspect as inspect
    from keras_bert.samples.quickstart import quickstart as quickstart
    from keras_bert.search.index import Index as Index
    from keras_bert.search.index import load_index as load_index
    from keras_bert.search.mining import mine_negatives as mine_negatives
    from keras_bert.serving.ask import ask as ask
    from keras_bert.serving.serve import BackgroundServer as BackgroundServer
    from keras_bert.serving.serve import serve as serve
    from keras_bert.tasks.classification.classifier import Classifier as Classifier
    from keras_bert.tasks.classification.classifier import PairClassifier as PairClassifier
    from keras_bert.tasks.classification.regressor import Regressor as Regressor
    from keras_bert.tasks.coreference.coreference_resolver import (
        CoreferenceResolver as CoreferenceResolver,
    )
    from keras_bert.tasks.multiple_choice.multiple_choice import MultipleChoice as MultipleChoice
    from keras_bert.tasks.pretraining.language_models import BidirectionalLM as BidirectionalLM
    from keras_bert.tasks.pretraining.language_models import CausalLM as CausalLM
    from keras_bert.tasks.pretraining.language_models import MaskedCausalLM as MaskedCausalLM
    from keras_bert.tasks.pretraining.pretrainer import FillMask as FillMask
    from keras_bert.tasks.pretraining.pretrainer import Pretrainer as Pretrainer
    from keras_bert.tasks.pretraining.pretrainer import (
        SentenceOrderPretrainer as SentenceOrderPretrainer,
    )
    from keras_bert.tasks.pretraining.pretrainer import SpanPretrainer as SpanPretrainer
    from keras_bert.tasks.pretraining.replaced_tokens import (
        ReplacedTokenPretrainer as ReplacedTokenPretrainer,
    )
    from keras_bert.tasks.pretraining.static_vectors import Cbow as Cbow
    from keras_bert.tasks.pretraining.static_vectors import SkipGram as SkipGram
    from keras_bert.tasks.question_answering.question_answerer import (
        QuestionAnswerer as QuestionAnswerer,
    )
    from keras_bert.tasks.span_classification.relation_classifier import (
        RelationClassifier as RelationClassifier,
    )
    from keras_bert.tasks.span_classification.span_classifier import (
        SpanClassifier as SpanClassifier,
    )
    from keras_bert.tasks.tagging.semantic_role_tagger import (
        SemanticRoleTagger as SemanticRoleTagger,
    )
    from keras_bert.tasks.tagging.tagger import Tagger as Tagger
    from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder as TextEmbedder
    from keras_bert.text.tokenizer import Tokenizer as Tokenizer
    from keras_bert.text.vocabularies.bpe import BpeVocabulary as BpeVocabulary
    from keras_bert.text.vocabularies.bpe import GptVocabulary as GptVocabulary
    from keras_bert.text.vocabularies.byte_level import ByteLevelVocabulary as ByteLevelVocabulary
    from keras_bert.text.vocabularies.unigram import UnigramVocabulary as UnigramVocabulary
    from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary as WordPieceVocabulary
    from keras_bert.text.vocabulary import Vocabulary as Vocabulary
    from keras_bert.text.vocabulary_files import load_vocabulary as load_vocabulary
    from keras_bert.training.distill import distill as distill
    from keras_bert.training.finetune import finetune as finetune
    from keras_bert.training.finetune import sweep as sweep
    from keras_bert.training.glue import glue as glue
    from keras_bert.training.pretrain import pretrain as pretrain
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, modules=("sklearn",))
