"""The settings of pre-training runs."""

import dataclasses
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.objectives import CAUSAL_LM, OBJECTIVES
from keras_bert.base.settings import setting
from keras_bert.training.settings import OPTIMIZERS, SCHEDULES, RunSettings

BAD_RECORDS = ("error", "skip")
INITIALIZATIONS = ("neighbours", "bert")


class Phase(NamedTuple):
    """A stretch of a pre-training run on one data folder; either `steps` or `minutes` is None."""

    data: str
    batch_size: int
    batch_tokens: int | None
    steps: int | None
    minutes: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainSettings(RunSettings):
    """Settings of `keras_bert.pretrain`.

    Of `data`, `steps` or `minutes`, and `batch_size`, lists make `phases`.
    """

    data: str = setting(
        help="the folder that keras-bert pretraining-data wrote; several are phases of the run, "
        "one after another",
        unit="FOLDER",
        is_path=True,
        several=True,
    )
    vocab: str = setting(
        help="the vocabulary that its rows were made with: a vocab.txt, or a folder with a "
        "vocabulary (byte-pair encoding: vocab.json and merges.txt)",
        unit="PATH",
        is_path=True,
    )
    steps: int | None = setting(
        None,
        help="optimizer steps, of each phase",
        unit="STEPS",
        default_help="give minutes",
        at_least=1,
        several=True,
    )
    minutes: float | None = setting(
        None,
        help="in place of steps: train for so long, all in all; how many steps that is, and with "
        "them the schedule, is settled at the start by measuring (of each phase)",
        unit="MINUTES",
        default_help="give steps",
        above=0,
        several=True,
        instead_of="steps",
    )
    batch_size: int = setting(
        32, help="rows in a step, of each phase", unit="ROWS", at_least=1, several=True
    )
    batch_tokens: int | None = setting(
        None,
        help="in place of the batch size: positions in a step, padding counted in; rows of about "
        "one length make a batch, as many as there is room for (of each phase)",
        unit="TOKENS",
        default_help="batch_size rows",
        at_least=1,
        several=True,
        instead_of="batch_size",
    )
    architecture: str | None = setting(
        None,
        help="tiny, mini, small, medium, base, large, or a config.json: random weights",
        unit="NAME|FILE",
        default_help="tiny, where no model is given",
        instead_of="model",
    )
    model: str | None = setting(
        None,
        help="go on from the weights of a model folder, of a run's output, or of hf://owner/name",
        unit="FOLDER",
        default_help="start from random weights",
        is_path=True,
    )
    initialization: str | None = setting(
        None,
        help="what random weights look at before the first step: heads of the first block look at "
        "the tokens beside their own, which a masked LM otherwise takes thousands of steps to find "
        "(neighbours), or at nothing in particular, as in BERT",
        default_help="neighbours, where no model is given",
        choices=INITIALIZATIONS,
    )
    learning_rate: float = setting(
        5e-4,
        help="the highest rate, reached at the end of the warm-up",
        unit="RATE",
        above=0,
    )
    optimizer: str = setting(
        "adamw",
        help="AdamW, or LAMB, whose steps are in proportion to each matrix (for batches of "
        "thousands of rows)",
        choices=OPTIMIZERS,
    )
    schedule: str = setting(
        "linear",
        help="how the rate falls after the warm-up: to 0 in a line or along half a cosine, to a "
        "32nd (slanted triangular), along half a cosine as it also rose (one-cycle), or not at all",
        choices=SCHEDULES,
    )
    clip_norm: float = setting(
        1.0, help="the global norm that gradients are cut to; 0 cuts none", unit="NORM", at_least=0
    )
    gradient_accumulation: int = setting(
        1,
        help="parts that the rows of a step are computed in, one after another, where all at once "
        "are too many for the memory",
        unit="PARTS",
        at_least=1,
    )
    layer_decay: float = setting(
        1.0,
        help="the rate of each block is that of the one above it, times this; heads have the whole "
        "rate, and the embeddings the lowest",
        unit="SHARE",
        above=0,
        at_most=1,
    )
    eval_every: int | None = setting(
        None,
        help="steps between two evaluations",
        unit="STEPS",
        default_help="at every checkpoint",
        at_least=1,
    )
    eval_batches: int | None = setting(
        None,
        help="evaluate on the first batches of the eval split, so many",
        unit="N",
        default_help="on all of it",
        at_least=1,
    )
    bad_records: str = setting(
        "error",
        help="what becomes of a run whose rows cannot all be read: it stops with an error that "
        "names file and record, or leaves out and counts what is damaged (skip), after reading all "
        "rows once at its start",
        choices=BAD_RECORDS,
    )
    objective: str | None = setting(
        None,
        help="what is trained: the objective of the data folder, or causal-lm, the next token on "
        "the sequences of any folder",
        default_help="the data folder's own",
        choices=(*OBJECTIVES, CAUSAL_LM),
    )
    causal_fraction: float = setting(
        0.0,
        help="fraction of a step's sequences that are read from left to right, each token "
        "predicting the next one: a masked and causal LM on data of the objective mlm (GPT-BERT)",
        unit="FRACTION",
        at_least=0,
        below=1,
    )
    span_boundary_weight: float | None = setting(
        None,
        help="what the loss of the span-boundary head counts beside that of the masked tokens, for "
        "rows of the objective span; 0 trains without the head",
        unit="WEIGHT",
        default_help="1",
        at_least=0,
    )
    max_span_length: int | None = setting(
        None,
        help="tokens of a span, at most, that are predicted from its boundaries; those further in "
        "are predicted in their places alone",
        unit="TOKENS",
        default_help="20, or that of the model",
        at_least=1,
    )

    @classmethod
    def of(cls, values):
        """As `Settings.of`; of two settings that exclude each other, one may be given.

        Only here is it known whether `batch_size` was given, since it has a default.
        """
        if values.get("batch_tokens") is not None and values.get("batch_size") is not None:
            raise InputError(
                "Give either `batch_size`, the rows in a step, or `batch_tokens`, the positions in "
                "one."
            )
        return super().of(values)

    def check(self):
        super().check()
        self._check_multiple("eval_every")
        self._check_multiple("steps")
        if self.model is not None and self.architecture is not None:
            raise InputError(
                "Give either `model`, a folder whose weights to go on from, or `architecture`, to "
                "start from random weights."
            )
        if self.model is not None and self.initialization is not None:
            raise InputError(
                "`initialization` is about random weights, and `model` has weights; leave one out."
            )
        if (self.steps is None) == (self.minutes is None):
            raise InputError("Give either `steps`, how many to train for, or `minutes`, how long.")
        for phase in self.phases:
            name = "batch_size" if phase.batch_tokens is None else "batch_tokens"
            size = getattr(phase, name)
            if size % self.gradient_accumulation:
                raise InputError(
                    f"`{name}` is {size}, all that a step has; it should be a multiple of "
                    f"`gradient_accumulation`, {self.gradient_accumulation}, the parts of a step."
                )
        if self.causal_fraction and self.objective == CAUSAL_LM:
            raise InputError(
                "`causal_fraction` is for data of the objective mlm, of which it trains a part as "
                "a causal LM. Leave it out with `objective` causal-lm, which trains all of it so."
            )
        if self.causal_fraction:
            self._check_parts_of_a_step()
        if self.layer_decay != 1 and self.optimizer != "adamw":
            raise InputError(
                "`layer_decay` is for adamw, and LAMB has no rates of layers; leave one of the two "
                "out."
            )

    def _check_parts_of_a_step(self):
        if self.batch_tokens is not None:
            raise InputError(
                "Masked and causal rows are trained together in batches of as many rows each; give "
                "`batch_size` in place of `batch_tokens`, or no `causal_fraction`."
            )
        for phase in self.phases:
            if phase.batch_size // self.gradient_accumulation < 2:
                raise InputError(
                    "A batch of one row is either masked or causal; give no `causal_fraction`, or "
                    "more rows."
                )

    @property
    def phases(self):
        """The list of `Phase`: what is given once is that of all.

        Raises `InputError` where lists are not equally long.
        """
        given = {name: getattr(self, name) for name in Phase._fields}
        lists = {name: value for name, value in given.items() if isinstance(value, list)}
        count = max(map(len, lists.values()), default=1)
        for name, values in lists.items():
            if len(values) != count:
                longest = next(name for name in lists if len(lists[name]) == count)
                raise InputError(
                    f"`{name}` has {len(values)} values and `{longest}` {count}; a run of several "
                    "phases has one value for all, or one for each."
                )
        columns = (lists.get(name, [value] * count) for name, value in given.items())
        return [Phase(*values) for values in zip(*columns, strict=True)]
