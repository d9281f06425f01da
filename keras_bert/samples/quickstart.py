"""The whole way in one call, from raw text to a SavedModel that answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.files import (
    NotJson,
    clear_leftovers_in,
    delete,
    held_names,
    owned,
    parse_json,
    read_small,
    system_errors,
    write_json,
)
from keras_bert.base.formatting import listed
from keras_bert.base.settings import takes
from keras_bert.base.signals import says
from keras_bert.samples.quickstart_steps import ARCHITECTURE, QuickstartSteps
from keras_bert.samples.settings import QuickstartSettings
from keras_bert.samples.texts import PACKAGES

# The names in the output folder, the last ones first: `settings.json` is written at the beginning
# and marks the folder as ours, `results.json` at the end. With `force` these are deleted, in this
# order, and nothing else: what a kill leaves of them is the beginning of a quickstart.
_ENTRIES = (
    "results.json",
    "ask.py",
    "savedmodels",
    "spam",
    "taggers",
    "pretrained",
    "pretraining-data",
    "architecture.json",
    "vocab.txt",
    "vocab.counts.tsv",
    "tags",
    "messages",
    "text",
    "settings.json",
)


@dataclass(frozen=True, kw_only=True)
class QuickstartSizes:
    """How large the quickstart is. The defaults take under five minutes on two cores.

    Attributes:
        packages: whose docstrings are read, beside the manual (see `write_docstrings`).
        vocabulary: pieces, the special ones counted in.
        architecture: the fields of a config.json but for the vocabulary's size.
        max_length: tokens in a row of pre-training data and in a message, special ones counted in.
        eval_fraction: share of the documents that is held out.
        mlm_probability: share of a row's tokens that are predicted; with so few steps more than
            BERT's 15 % teach more (Wettig et al. 2022).
        steps, batch_size, learning_rate: of pre-training.
        tagged: numbers of tagged sentences that taggers are trained on; the last is all of them.
        tagger_steps: of each tagger.
        tagger_rates: of the taggers from `random` weights and from the `pretrained` ones, to each
            what suits it.
        epochs, spam_rate: of the spam filter.
        finetune_batch_size: sentences or messages in a step.
    """

    packages: Sequence[str] = PACKAGES
    vocabulary: int = 4000
    architecture: Mapping[str, Any] = field(default_factory=lambda: dict(ARCHITECTURE))
    max_length: int = 64
    eval_fraction: float = 0.03
    mlm_probability: float = 0.25
    steps: int = 1500
    batch_size: int = 32
    learning_rate: float = 2e-3
    tagged: Sequence[int] = (50, 120, 240)
    tagger_steps: int = 100
    tagger_rates: Mapping[str, float] = field(
        default_factory=lambda: {"random": 1e-3, "pretrained": 2e-3}
    )
    epochs: int = 8
    spam_rate: float = 1e-3
    finetune_batch_size: int = 16


@takes(QuickstartSettings)
def quickstart(
    output: str | PathLike[str],
    *,
    sizes: QuickstartSizes | None = None,
    report: Callable[[str], None] | None = None,
    **settings,
) -> dict[str, Any]:
    """Runs the whole line in `output` and returns what came out, as `results.json` holds it.

    Where the same was begun there, it goes on: each step finds what it has written. Where it is
    finished, nothing is done.

    Args:
        {settings}
        sizes: `QuickstartSizes`; None is the defaults. The same seed and sizes give the same run.
        report: a function that is told, line by line, what is done, by which command, and how long
            it took.

    Returns a dictionary: `sizes`, `seed`, `masked_lm` (`start`, `end` and `end_on_train`, the loss
    in nats a masked token, on held-out text before and after pre-training and on the text trained
    on; `unigram_entropy`, the loss of a model that knows word frequencies only), `tags` (for each
    number of tagged `sentences` the accuracy of a tagger that starts from `random` weights and from
    the `pretrained` ones, on so many unseen `words`), `spam` (`accuracy` of the filter on so many
    unseen `examples`), `answers` (`text`, `label`, `score` of each of SENTENCES), `savedmodel` (its
    folder), `seconds` (by step) and `total_seconds`, both of the session that came to the end.

    Raises InputError for an output folder that holds something else, or is in use.
    """
    settings = QuickstartSettings.of({"output": output, **settings})
    sizes = sizes or QuickstartSizes()
    output, seed = Path(settings.output), settings.seed
    report = report or (lambda line: None)
    if output.exists() and not output.is_dir():
        raise InputError(f"The output {output} is a file; give a folder.")
    with owned(output), system_errors(output):
        # Through JSON, so that it compares equal to what is read back.
        begun = json.loads(json.dumps({"seed": seed, **asdict(sizes)}))
        _begin(output, begun, force=settings.force)
        if (output / "results.json").exists():
            report(f"The quickstart in {output} is finished already; these are its results.")
            return json.loads((output / "results.json").read_text(encoding="utf-8"))
        steps = QuickstartSteps(output, sizes=sizes, seed=seed, report=report)
        with says(steps.how_far):
            results = steps.all()
            write_json(output / "results.json", results)
    return results


def _begin(output, settings, *, force):
    """Marks `output` as this quickstart's, or finds that it is, or refuses."""
    held = held_names(output)
    found = _settings_in(output) if "settings.json" in held else None
    if held and found is None:
        raise InputError(
            f"The output folder {output} holds something else ({listed(held, most=3)}); give a new "
            "or an empty folder."
        )
    if found is not None and found != settings and not force:
        raise InputError(
            f"The output folder {output} holds a quickstart already, begun with other settings; "
            "give another folder, or `force=True` to begin anew."
        )
    clear_leftovers_in(output)
    if held and force:
        for name in _ENTRIES:
            delete(output / name)
    if found is None or force:
        write_json(output / "settings.json", {"command": "quickstart", **settings})


def _settings_in(output):
    """The settings of the quickstart that was begun in a folder; None where it is none of ours."""
    try:
        found = parse_json(read_small(output / "settings.json"))
    except (NotJson, OSError):
        return None
    if not isinstance(found, dict) or found.pop("command", None) != "quickstart":
        return None
    return found
