"""keras-bert: from raw text to a served language model.

Importing this package loads nothing heavy: a name brings its module in when it is first used, so
that `keras-bert --help` answers at once and the model code can be used without TensorFlow.
"""

from keras_bert.base.lazy import lazy_names

__version__ = "0.1.0"

# Public name -> the module that defines it.
_HOMES = {
    "InputError": "keras_bert.base.errors",
    "BertConfig": "keras_bert.encoders.bert.config",
    "BertEncoder": "keras_bert.encoders.bert.encoder",
    "Vocabulary": "keras_bert.text.vocabulary",
    "WordPieceVocabulary": "keras_bert.text.vocabulary",
    "BpeVocabulary": "keras_bert.text.vocabulary",
    "load_vocabulary": "keras_bert.text.vocabulary_files",
    "Tokenizer": "keras_bert.text.tokenizer",
    "Pretrainer": "keras_bert.tasks.pretraining.pretrainer",
    "SentenceOrderPretrainer": "keras_bert.tasks.pretraining.pretrainer",
    "FillMask": "keras_bert.tasks.pretraining.pretrainer",
    "SpanPretrainer": "keras_bert.tasks.pretraining.pretrainer",
    "CausalLM": "keras_bert.tasks.pretraining.causal_lm",
    "MaskedCausalLM": "keras_bert.tasks.pretraining.causal_lm",
    "Classifier": "keras_bert.tasks.classification.classifier",
    "PairClassifier": "keras_bert.tasks.classification.classifier",
    "Regressor": "keras_bert.tasks.classification.regressor",
    "MultipleChoice": "keras_bert.tasks.multiple_choice.multiple_choice",
    "Tagger": "keras_bert.tasks.tagging.tagger",
    "QuestionAnswerer": "keras_bert.tasks.question_answering.question_answerer",
    "SpanClassifier": "keras_bert.tasks.span_classification.span_classifier",
    "RelationClassifier": "keras_bert.tasks.span_classification.relation_classifier",
    "ScalarMix": "keras_bert.heads.layer_mix",
    "load": "keras_bert.checkpoints",
    "load_task": "keras_bert.checkpoints",
    "pretrain": "keras_bert.training.pretrain",
    "finetune": "keras_bert.training.finetune",
    "sweep": "keras_bert.training.finetune",
    "glue": "keras_bert.training.glue",
    "evaluate": "keras_bert.inference.evaluate",
    "predict": "keras_bert.inference.predict",
    "embed": "keras_bert.inference.embed",
    "embed_to_file": "keras_bert.inference.embed_to_file",
    "fill_mask": "keras_bert.inference.fill_mask",
    "export": "keras_bert.exports.saved_model",
    "convert": "keras_bert.checkpoints.convert",
    "serve": "keras_bert.serving.serve",
    "ask": "keras_bert.serving.ask",
    "BackgroundServer": "keras_bert.serving.serve",
    "learn_vocabulary": "data_gen.vocabulary",
    "pretraining_data": "data_gen.pretraining_data",
    "inspect": "keras_bert.records.inspection",
    "draw_attention": "keras_bert.pictures.attention",
    "draw_contexts": "keras_bert.pictures.words",
    "draw_run": "keras_bert.pictures.run",
    "draw_similarity": "keras_bert.pictures.words",
    "show_predictions": "keras_bert.pictures.predictions",
    "diagnose": "keras_bert.cli.doctor",
    "push": "keras_bert.exports.push",
    "quickstart": "keras_bert.samples.quickstart",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
