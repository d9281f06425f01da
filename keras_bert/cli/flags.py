"""Flags from the fields of a `Settings` class, and settings from the parsed flags."""

import argparse
import dataclasses
import shlex
import typing

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import about, value_type

_LONGEST_CHOICES = 60  # in the help, which fits into 80 columns
_YES_OR_NO = {"yes": True, "no": False}
# The groups of flags in the help, in this order, and what is in them; required flags are the first
# group, and all others are the command's (or the task's) own.
_GROUPS = {
    "task and model": """task model architecture max_length layers pooling hidden_layers crf
        label_subwords aggregation document_context threshold metric class_weights null_threshold
        stride""",
    "data": """data tasks dev_only input vocab cased text text_a text_b question context labels
        header fields glue glue_dir text_column label_column label_columns label_separator
        word_column tag_column sentence_column missing keep_na scheme pretokenized invalid_tags
        unknown_labels wrong_offsets multi_label one_text eval_fraction text_field input_format""",
    "optimisation": """quick epochs steps minutes batch_size batch_tokens learning_rate schedule
        warmup optimizer weight_decay clip_norm layer_decay gradient_accumulation dropout patience
        keep num_seeds ensemble train_layers gradual_unfreezing freeze_encoder
        train_fraction baseline seed""",
    "checkpoints": "checkpoint_every keep_checkpoints eval_every eval_batches force settings_file",
    "hardware": "strategy dtype precision steps_per_execution workers deterministic",
    "advanced": """callbacks scalar_mix_l2 scalar_mix_layer_norm bilstm static_vectors
        freeze_static_vectors lm_loss_weight initialization bad_lines shard_bytes compression
        replacement""",
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}
# The flags that --help shows, those of the tutorials among them; --help-all shows all.
_COMMON = frozenset(
    """task model architecture train dev data input output vocab epochs steps minutes batch_size
    learning_rate max_length seed freeze_encoder crf pooling multi_label text text_a text_b question
    context settings_file show_errors objective masking size algorithm models rest_port precision to
    layers tokens top_k glue word analogy analogies pairs tasks quick num_seeds dev_only fields
    text_column label_column word_column tag_column class_weights metric stride train_fraction
    baseline dtype schedule callbacks layer_decay gradual_unfreezing dropout bilstm static_vectors
    scalar_mix_l2""".split()
)


def add(parser, cls, *, command=None, is_short=False):
    """Adds a flag for each setting; with `command`, also `--settings` with a run.json of it.

    With `is_short` the help has only the common flags.

    Settings that are not given are not in the parsed arguments: a settings file is overridden by
    the flags, wherever it is given, and overrides the defaults. `read` checks required settings,
    since the file may have them.
    """
    fields = dataclasses.fields(cls)
    titles = ["required", "task and model", "options", *_GROUPS]
    groups = {title: parser.add_argument_group(title) for title in dict.fromkeys(titles)}
    for field in fields:
        is_required = field.default is dataclasses.MISSING
        group = groups["required" if is_required else _GROUP_OF.get(field.name, "options")]
        options = {"default": argparse.SUPPRESS, **_options(field)}
        if is_short and not is_required and field.name not in _COMMON:
            options["help"] = argparse.SUPPRESS
        if about(field).positional:
            group.add_argument(field.name, **options, nargs="?")
        else:
            group.add_argument(_flag(field), **options, dest=field.name)
    if command is not None:
        groups["checkpoints"].add_argument(
            "--settings",
            dest="settings_file",
            metavar="run.json",
            help="take the settings of an earlier run from its run.json; flags override the file",
        )
    parser.set_defaults(settings_class=cls, settings_of=command)


def read(arguments):
    """The settings in the flags and the settings file, as a dictionary.

    Raises:
        InputError: the file is not one of this command or has an unknown setting, or a setting is
            missing or invalid.
    """
    cls = arguments.settings_class
    names = {field.name for field in dataclasses.fields(cls)}
    flags = {name: value for name, value in vars(arguments).items() if name in names}
    of_file = {}
    path = getattr(arguments, "settings_file", None)
    if path is not None:
        from keras_bert.training.run_folder import read_settings

        of_file = cls.without_removed(read_settings(path, command=arguments.settings_of))
        for name in of_file:
            if name not in names and name not in cls.removed():
                raise InputError(f"Unknown setting {name} of {arguments.settings_of} in {path}.")
        # The file has every setting, also those that another one excludes, with their defaults.
        fields = dataclasses.fields(cls)
        is_default = {field.name for field in fields if of_file.get(field.name) == field.default}
        excluded = _excluded(cls, flags) | _excluded(cls, of_file) & is_default
        of_file = {name: value for name, value in of_file.items() if name not in excluded}
    settings = of_file | flags
    cls.of(settings)  # before anything heavy is loaded
    return settings


def _excluded(cls, settings):
    """The settings that are excluded by others that are not None."""
    present = {name for name, value in settings.items() if value is not None}
    pairs = [(f.name, about(f).instead_of) for f in dataclasses.fields(cls) if about(f).instead_of]
    return {other for pair in pairs for one, other in (pair, pair[::-1]) if one in present}


def spelled_as_flag(cls):
    """How the arguments in a message are written on the command line of a settings class.

    `steps` is --steps, `objective="mlm"` --objective mlm, and `header=False` --header no. What is
    not a flag of the class is written as in Python.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}

    def spelled(name, value):
        if name not in fields:
            return str(argument(name, value))
        if about(fields[name]).positional:
            return about(fields[name]).unit
        if value_type(fields[name]) == (bool, True):  # a flag that takes yes or no
            value = {"True": "yes", "False": "no"}.get(value, value)
        if value is None or value == "True":
            return _flag(fields[name])
        return f"{_flag(fields[name])} {shlex.quote(value.strip(chr(34)))}"

    return spelled


def _flag(field):
    return f"--{(about(field).flag or field.name).replace('_', '-')}"


def _options(field):
    """The options of `add_argument`, without the name."""
    description = about(field)
    kind, optional = value_type(field)
    options = {"help": _help(field)}
    if kind is bool and not optional:
        # A model that a run continues with may have the setting on: --no-crf turns it off.
        action = argparse.BooleanOptionalAction if description.stored else "store_true"
        return {**options, "action": action}
    if kind is bool:
        return {**options, "type": _yes_or_no, "metavar": "{yes,no}"}
    if typing.get_origin(kind) is list:
        (kind,) = typing.get_args(kind)
        options |= {"action": "append"} if optional else {"nargs": "+"}
        return {**options, "type": _converter(kind), "metavar": description.unit}
    if description.several:
        options |= {"nargs": "+", "action": _OneOrSeveral}
    unit = description.unit
    if description.choices:
        choices = "{" + ",".join(map(str, description.choices)) + "}"
        if len(choices) <= _LONGEST_CHOICES:
            unit = choices
        else:  # argparse breaks the line of a help text, but not this
            options["help"] += f"; one of {', '.join(map(str, description.choices))}"
    return {**options, "type": _converter(kind), "metavar": unit or field.name.upper()}


class _OneOrSeveral(argparse.Action):
    """A flag that takes one value, or a list."""

    def __call__(self, parser, namespace, given, option_string=None):
        setattr(namespace, self.dest, given if len(given) > 1 else given[0])


def _help(field):
    default = about(field).default_help if field.default is None else field.default
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    has_default = field.default is not dataclasses.MISSING
    is_switch = value_type(field)[0] is bool and field.default is False
    text = about(field).help
    if has_default and not is_switch:
        text += f" (default: {default})"
    return text.replace("%", "%%")


def _converter(kind):
    """The function that makes a value of the text on a command line."""
    names = {int: "a whole number", float: "a number"}
    if kind not in names:
        return str

    def convert(text):
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {names[kind]}") from None

    return convert


def _yes_or_no(text):
    if text not in _YES_OR_NO:
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return _YES_OR_NO[text]


_WITH_A_HYPHEN = {"--job-server-timeout"}  # all other options of Beam have underscores


def reject_unknown(options):
    """Raises `InputError` for options that Beam does not have; Beam is loaded only if needed."""
    for option in options:
        name = option.split("=")[0]
        if "-" in name.removeprefix("--") and name.startswith("--") and name not in _WITH_A_HYPHEN:
            raise InputError(
                f"Unknown option {name}: neither this command nor Apache Beam has it. See --help."
            )
    if options:
        from data_gen.runner import options as check

        check(options)
