"""The settings of evaluation and prediction, and of the heads of a pre-trained model.

They need no Keras. Those of vectors are in `vector_settings`.
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import InitVar
from pathlib import Path

from keras_bert.base.errors import InputError, argument, arguments
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    checkpoint_setting,
    data_setting,
    merged,
    model_setting,
    optimisation_setting,
    reader_settings,
    required,
    setting,
    settings_type,
)
from keras_bert.readers import TextFileSettings

_MASKED_LM_FOLDER = (
    "a model folder with a masked-LM head, the output of pretrain, or hf://owner/name"
)
_CAUSAL_LM_FOLDER = "a model folder with a causal LM, the output of pretrain, or hf://owner/name"
# The file of an exported task that says what its outputs do not (see `exported_task`).
ABOUT_EXPORT = "assets.extra/keras_bert.json"
ANY_RUN = "a model folder, the output of a run, or hf://owner/name"


def export_version(path):
    """The folder of a SavedModel: `path`, or its version with the highest number; else None."""
    path = Path(path)
    if (path / "saved_model.pb").is_file():
        return path
    versions = [version for version in path.glob("[0-9]*") if version.name.isdecimal()]
    versions = [version for version in versions if (version / "saved_model.pb").is_file()]
    return max(versions, key=lambda version: int(version.name), default=None)


def max_length_setting(default_help, more=""):
    """The setting for the length of a sequence."""
    return model_setting(
        None,
        help=f"maximum sequence length, including [CLS] and [SEP]{more}",
        unit="TOKENS",
        default_help=default_help,
        at_least=3,
        common=True,
    )


def _batch_size_setting():
    return optimisation_setting(
        32, help="sequences per batch", unit="SEQUENCES", at_least=1, common=True
    )


class InferenceSettings(Settings):
    """The settings that evaluation and prediction have in common."""

    model: object = required(
        kw_only=False,
        help="a fine-tuned model folder, the output of finetune, an export, or hf://owner/name",
        unit="FOLDER",
    )
    max_length: int | None = max_length_setting("as in training")
    batch_size: int = _batch_size_setting()


class FillMaskSettings(Settings):
    """Settings of `keras_bert.fill_mask`."""

    model: object = required(help=_MASKED_LM_FOLDER, unit="FOLDER")
    text: str = required(help="a text with one or more [MASK]", unit="TEXT")
    top_k: int = setting(5, help="candidates per [MASK]", unit="N", at_least=1, common=True)
    head: str = setting(
        "masked-lm",
        help="the head that predicts: from the vector of each [MASK], or, of a model that was "
        "pre-trained on spans, from the tokens next to each run of [MASK]",
        choices=("masked-lm", "span-boundary"),
    )


class FollowsSettings(Settings):
    """Settings of `keras_bert.follows`."""

    model: object = required(
        help="a model folder with a next-sentence or sentence-order head, the output of pretrain, "
        "or hf://owner/name",
        unit="FOLDER",
    )
    text_a: Sequence[str] = required(help="the first text, or several", unit="TEXT")
    text_b: Sequence[str] = required(help="the second text, or as many as first ones", unit="TEXT")

    def check(self):
        if len(self.text_a) != len(self.text_b):
            raise InputError.naming(
                "{text_a} and {text_b} must have the same length. Received: {} and {}.",
                len(self.text_a),
                len(self.text_b),
            )


class GenerateSettings(Settings):
    """Settings of `keras_bert.generate`."""

    on_text: InitVar[Report] = None

    model: object = required(help=_CAUSAL_LM_FOLDER, unit="FOLDER")
    prompt: Sequence[str] = required(
        help="the beginning of a text, or of several texts", unit="TEXT"
    )
    max_tokens: int = setting(64, help="maximum number of new tokens", unit="TOKENS", at_least=1)
    temperature: float | None = setting(
        None,
        help="draw tokens at random, from the probabilities of the logits divided by it: below 1 "
        "prefers probable tokens",
        unit="NUMBER",
        default_help="1 with `top_k` or `top_p`; without them, always take the most probable token",
        above=0,
    )
    top_k: int | None = setting(
        None,
        help="draw from this many most probable tokens",
        unit="N",
        default_help="all",
        at_least=1,
        common=True,
    )
    top_p: float | None = setting(
        None,
        help="draw from the most probable tokens that together have this probability",
        unit="PROBABILITY",
        default_help="1",
        above=0,
        at_most=1,
    )
    seed: int = optimisation_setting(
        0,
        help="seed of the random choice; the same seed gives the same text",
        unit="N",
        at_least=0,
        at_most=2**32 - 1,
        common=True,
    )
    jit_compile: bool = setting(
        False,
        help="compile the generation with XLA: the first text takes a second or two longer, and a "
        "small model generates about twice as many tokens per second",
    )


class GenerateCommandSettings(GenerateSettings):
    """Settings of the command `generate`."""

    candidates: bool = setting(
        False, help="show the most probable next tokens (`top_k`, 5 by default) instead of a text"
    )
    log_probability: bool = setting(
        False, help="show the log-probability of each prompt instead of a text"
    )

    def check(self):
        if self.candidates and self.log_probability:
            raise InputError.naming("Pass either {candidates} or {log_probability}, not both.")
        if not (self.candidates or self.log_probability):
            return
        shown, used = ("candidates", {"top_k"}) if self.candidates else ("log_probability", set())
        for field in dataclasses.fields(GenerateSettings):
            changed = field.default not in (dataclasses.MISSING, getattr(self, field.name))
            if changed and field.name not in used:
                raise InputError.naming(
                    "{} has no effect with {}. Leave it out.", argument(field.name), argument(shown)
                )


class NextTokensSettings(Settings):
    """Settings of `keras_bert.next_tokens`."""

    model: object = required(help=_CAUSAL_LM_FOLDER, unit="FOLDER")
    prompt: str = required(help="the beginning of a text", unit="TEXT")
    top_k: int = setting(5, help="number of candidates", unit="N", at_least=1, common=True)


class LogProbabilitySettings(Settings):
    """Settings of `keras_bert.log_probability`."""

    model: object = required(help=_CAUSAL_LM_FOLDER, unit="FOLDER")
    text: Sequence[str] = required(help="the texts", unit="TEXT")


class EvaluateSettings(InferenceSettings):
    """Settings of `keras_bert.evaluate`; `evaluate_settings` adds how the task reads its file."""

    report: InitVar[Report] = None

    data: object = required(
        kw_only=False,
        help="the labelled examples; - is standard input",
        unit="FILE",
    )
    show_errors: int = setting(
        0, help="show this many errors, the most confident first", unit="N", at_least=0, common=True
    )


class EvaluateRecordsSettings(Settings):
    """Settings of `keras_bert.evaluate` for a pre-trained model and a data folder."""

    report: InitVar[Report] = None

    model: object = required(help=_MASKED_LM_FOLDER, unit="FOLDER")
    data: PathText = required(help="the output of pretraining-data", unit="FOLDER")
    batch_size: int = _batch_size_setting()
    batches: int | None = setting(
        None,
        help="evaluate only this many batches of the eval split",
        unit="N",
        default_help="all of them",
        at_least=1,
    )


class CompareSettings(Settings):
    """Settings of `keras_bert.compare`; `compare_settings` adds how the task reads its file."""

    report: InitVar[Report] = None

    models: object = required(
        kw_only=False,
        help="two fine-tuned models of one task, the earlier one first: model folders, outputs of "
        "finetune, exports (SavedModels) or hf://owner/name",
        unit="FOLDER",
        several=True,
    )
    data: object = required(kw_only=False, help="the labelled examples", unit="FILE")
    output: PathText | None = setting(
        None,
        help="write the examples whose answer changed: a table NAME.csv, NAME.parquet or "
        "NAME.jsonl with the columns of the input",
        unit="FILE",
        default_help="not written",
        recorded=False,
        common=True,
    )
    samples: int = setting(
        2000, help="bootstrap samples for the intervals", unit="N", at_least=100, at_most=100_000
    )
    seed: int = optimisation_setting(
        0, help="seed of the bootstrap samples", unit="N", at_least=0, at_most=2**32 - 1
    )
    batch_size: int = _batch_size_setting()
    force: bool = checkpoint_setting(
        False, help="replace an output that this command wrote before", recorded=False
    )

    def check(self):
        super().check()
        models = self.models
        count = len(models) if isinstance(models, list | tuple) else 1
        if count != 2:
            raise InputError.naming(
                "{models} must be two models, the earlier one first. Received: {}.", count
            )
        if self.force and self.output is None:
            raise InputError.naming("{force} is for {output}. Leave it out.")


class CompareCommandSettings(CompareSettings):
    """Settings of the command `compare`."""

    picture: PathText | None = setting(
        None,
        help="draw the differences with their intervals, and F1 by label",
        unit="FILE.png",
        default_help="no picture",
        recorded=False,
        common=True,
    )


class PredictSettings(InferenceSettings):
    """Settings of `keras_bert.predict`; `predict_settings` adds those of the task."""

    as_dataframe: InitVar[bool] = False
    report: InitVar[Report] = None

    data: object = required(
        kw_only=False,
        default=None,
        help="the examples, with or without labels; - is standard input",
        unit="FILE",
        default_help="pass the examples themselves",
        group="data",
        common=True,
    )
    output: PathText | None = setting(
        None,
        help="write a table NAME.csv, NAME.parquet or NAME.jsonl: the columns of the input, the "
        "label and a column for each probability; of GLUE the folder for the file to submit, which "
        "gets the name that GLUE expects",
        unit="FILE",
        default_help="JSON Lines on standard output",
        recorded=False,
        common=True,
    )
    force: bool = checkpoint_setting(
        False, help="replace an output that this command wrote before", recorded=False
    )

    def check(self):
        super().check()
        if self.force and self.output is None:
            raise InputError.naming("{force} is for {output}. Leave it out.")


def _one_text(task_settings):
    """The field by which a call says that a model scores single texts, if the task may."""
    if "one_text" not in task_settings.names():
        return {}
    help = "the model scores single texts (of another program's folder, which does not store it)"
    return {"one_text": (bool, data_setting(False, help=help))}


@functools.cache
def evaluate_settings(task_settings):
    """The class of all settings of `evaluate`, for the settings class of a task."""
    bases = (merged(reader_settings(task_settings), EvaluateSettings),)
    return settings_type("EvaluateSettings", bases, _one_text(task_settings))


@functools.cache
def compare_settings(task_settings):
    """The class of all settings of `compare`, for the settings class of a task."""
    return merged(reader_settings(task_settings), CompareSettings)


@functools.cache
def compare_command_settings(task_settings):
    """The class of all settings of the command `compare`, likewise."""
    return merged(reader_settings(task_settings), CompareCommandSettings)


@functools.cache
def predict_settings(task_settings):
    """The class of all settings of `predict`, for the settings class of a task.

    It has one list of texts per name in the task's EXAMPLE_FIELDS, as an alternative to `data`; and
    `text`, if the task may score single texts.
    """
    one_text, several = _one_text(task_settings), task_settings.EXAMPLE_FIELDS
    names = arguments(several, " and ")

    def check(self):
        PredictSettings.check(self)
        texts = [getattr(self, name) for name in several]
        single = self.text if one_text else None
        given = [self.data is not None, any(x is not None for x in texts), single is not None]
        if sum(given) != 1:
            if not texts:
                raise InputError.naming("Pass {data}, a file of examples.")
            if not any(given):
                raise InputError.naming("Pass {data}, a file of examples, or {}.", names)
            raise InputError.naming(
                "Pass either {data}, a file of examples, or {}, not both.", names
            )
        lengths = [len(given or ()) for given in texts]
        if len(set(lengths)) > 1:
            received = " and ".join(map(str, lengths))
            raise InputError.naming("{} must have the same length. Received: {}.", names, received)

    bases = (merged(reader_settings(task_settings), PredictSettings),)
    fields = {
        name: (
            Sequence[str] | None,
            data_setting(
                None,
                help=f"{name.replace('_', ' ')} of an example; repeat it for several examples",
                unit="TEXT",
                default_help="pass `data`",
                common=True,
            ),
        )
        for name in (*several, *(("text",) if one_text else ()))
    }
    return settings_type("PredictSettings", bases, {**fields, **one_text}, check=check)


class TextsSettings(TextFileSettings):
    """Which texts, and for which model."""

    report: InitVar[Report] = None

    model: object = required(help=ANY_RUN, unit="FOLDER")
    data: object = required(
        help="one text per line (.txt), CSV, TSV or JSON Lines; - is standard input",
        unit="FILE",
    )


class TextsOrFileSettings(TextsSettings):
    """Texts, either of a file or given themselves."""

    data: object = data_setting(
        None,
        help="a file: one text per line (.txt), CSV, TSV or JSON Lines; - is standard input",
        default_help="pass `text`",
        common=True,
    )
    text: Sequence[str] | None = data_setting(
        None, help="the texts", default_help="pass `data`", common=True
    )

    def check(self):
        super().check()
        if self.data is None and self.text is None:
            raise InputError.naming("Pass {data}, a file of texts, or {text}.")
        if self.data is not None and self.text is not None:
            raise InputError.naming("Pass either {data}, a file of texts, or {text}, not both.")


class ZeroShotSettings(TextsOrFileSettings):
    """Settings of `keras_bert.zero_shot`."""

    model: object = required(
        kw_only=False,
        help="a classifier of pairs for natural-language inference: a folder, the output of "
        "finetune, or hf://owner/name",
        unit="FOLDER",
    )
    text: Sequence[str] | None = required(
        kw_only=False,
        default=None,
        help="the texts",
        default_help="pass `data`",
        group="data",
        common=True,
    )
    labels: Sequence[str] | None = required(
        kw_only=False,
        default=None,
        help="a label to choose from; repeat it for each",
        unit="LABEL",
        default_help="two or more are needed",
        group="data",
        common=True,
    )
    template: str = setting(
        "This example is {}.",
        help="the hypothesis, with {} in place of the label",
        unit="TEXT",
    )
    multi_label: bool = setting(
        False, help="a text may have any number of the labels: each is decided on its own"
    )
    max_length: int | None = max_length_setting("as in training")
    batch_size: int = _batch_size_setting()

    def check(self):
        super().check()
        labels = self.labels or []
        if len({*labels}) < max(len(labels), 1 if self.multi_label else 2):
            raise InputError.naming(
                "{labels} must be two or more names, each once. Received: {}.", labels
            )
        if self.template.count("{}") != 1:
            raise InputError.naming(
                "{template} must have {} once, in place of the label. Received: {!r}.",
                "{}",
                self.template,
            )


class SurprisalSettings(TextsOrFileSettings):
    """Settings of `keras_bert.surprisal` and `keras_bert.pseudo_perplexity`."""

    model: object = required(
        help="a model folder with a masked-LM head or a causal LM, the output of pretrain, or "
        "hf://owner/name",
        unit="FOLDER",
    )
    mask_rest_of_word: bool = setting(
        False,
        help="also mask the tokens that follow in the same word, so that the end of a rare word "
        "does not give away its beginning (Kauf and Ivanova 2023); of a masked LM only",
    )


class SurprisalCommandSettings(SurprisalSettings):
    """Settings of the command `surprisal`."""

    picture: PathText | None = setting(
        None,
        help="draw the surprisal of each token of a text as a bar",
        unit="FILE.png",
        default_help="no picture",
    )
    perplexity: bool = setting(
        False, help="show only the pseudo-perplexity of all texts together, as JSON"
    )

    def check(self):
        super().check()
        if self.picture is not None and self.perplexity:
            raise InputError.naming("Pass either {picture} or {perplexity}, not both.")
        if self.picture is not None and (self.text is None or len(self.text) > 1):
            raise InputError.naming("{picture} is for a single text. Pass one {text}.")
