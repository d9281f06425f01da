"""A small model of every kind that can be exported, with random weights; none is trained."""

from keras_bert import (
    Classifier,
    CoreferenceResolver,
    FillMask,
    MultipleChoice,
    PairClassifier,
    QuestionAnswerer,
    Regressor,
    RelationClassifier,
    SemanticRoleTagger,
    SpanClassifier,
    Tagger,
    TextEmbedder,
)
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = "the film was good bad in rome oslo ada went to of who where is".split()
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TOKENIZER = make_tokenizer(WORDS)


def encoder():
    return make_encoder(TOKENIZER, num_hidden_layers=1)


def shaken(task, size=1.0):
    """The task with heads of large random weights, so that its answers differ from text to text.

    Larger ones make every score 0 or 1, and rounding the weights one of the other: heads of several
    layers have a smaller `size`.
    """
    rng = make_rng(3)
    for head in task.HEADS:
        for variable in getattr(task, head).weights:
            if "embedding" not in variable.path:
                variable.assign(rng.normal(0, size, variable.shape))
    return task


def tagger(**options):
    return shaken(Tagger(encoder(), TOKENIZER, labels=TAGS, max_length=24, **options))


# Kind -> its maker. A model of each is enough: what is special to a setting is the task's tests'.
MAKERS = {
    "classifier": lambda: shaken(Classifier(encoder(), TOKENIZER, labels=["x", "ÿ", "z"])),
    "multi-label": lambda: shaken(
        Classifier(encoder(), TOKENIZER, labels=["x", "y", "z"], multi_label=True, threshold=0.3)
    ),
    "pair-classifier": lambda: shaken(PairClassifier(encoder(), TOKENIZER, labels=["no", "yes"])),
    "regression": lambda: shaken(Regressor(encoder(), TOKENIZER)),
    "multiple-choice": lambda: shaken(MultipleChoice(encoder(), TOKENIZER)),
    "tagger": lambda: tagger(aggregation="mean"),
    "tagger-crf": lambda: tagger(crf=True),
    "semantic-roles": lambda: shaken(
        SemanticRoleTagger(encoder(), TOKENIZER, labels=TAGS, max_length=24), size=0.15
    ),
    "question-answering": lambda: shaken(
        QuestionAnswerer(
            encoder(),
            TOKENIZER,
            max_length=24,
            stride=6,
            max_answer_length=4,
            n_best=20,
            null_threshold=-0.5,
        )
    ),
    "span-classifier": lambda: shaken(
        SpanClassifier(
            encoder(), TOKENIZER, labels=["LOC", "PER"], max_length=24, max_span_length=3
        ),
        size=0.15,
    ),
    "relation-classifier": lambda: shaken(
        RelationClassifier(encoder(), TOKENIZER, labels=["in", "from"]), size=0.15
    ),
    "coreference": lambda: shaken(
        CoreferenceResolver(
            encoder(), TOKENIZER, max_length=24, max_span_length=3, max_antecedents=8
        ),
        size=0.3,
    ),
    "text-embedding": lambda: shaken(
        TextEmbedder(encoder(), TOKENIZER, pooling="cls+mean", dense="9:tanh", normalize=True)
    ),
    "fill-mask": lambda: FillMask(encoder(), TOKENIZER),
    "encoder": encoder,
}
