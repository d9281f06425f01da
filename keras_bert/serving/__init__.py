"""A development server with TensorFlow Serving's REST, and a client of its REST and gRPC.

Here are the settings of both, which need neither.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import InitVar

from keras_bert.base.errors import InputError, arguments
from keras_bert.base.settings import (
    Paths,
    PathText,
    Settings,
    data_setting,
    optimisation_setting,
    required,
    setting,
    settings_type,
)
from keras_bert.tasks import finetuned_task_types, settings_class


class ServeSettings(Settings):
    """Settings of `keras_bert.serve`."""

    report: InitVar[Callable[[str], None]] = print

    REMOVED = {"grpc_port": "Use {rest_port}, or TensorFlow Serving, which also speaks gRPC."}

    index: PathText | None = setting(
        None,
        help="an index to search, the output of index; it has the name of its folder",
        unit="INDEX",
        positional=True,
        default_help="none",
    )
    models: Paths = setting(
        (),
        help="an exported model, or a folder of several, and of indexes; each has the name of its "
        "folder",
        unit="FOLDER",
        default_help="pass an index",
        common=True,
    )
    host: str = setting(
        "127.0.0.1",
        help="the address to listen on; 0.0.0.0 is all addresses of this machine",
        unit="ADDRESS",
    )
    allowed_hosts: Sequence[str] | None = setting(
        None,
        help="more host names of this server, such as a proxy's; requests with any other host name "
        "are rejected; *.NAME means all names under NAME, * means any",
        unit="NAME",
        default_help="localhost and `host`",
    )
    rest_port: int = setting(
        8501,
        help="the port of REST and the page; 0 for a free one",
        at_least=0,
        at_most=65535,
        common=True,
    )
    attention: PathText | None = setting(
        None,
        help="a model folder, not exported, whose attention the page shows",
        unit="FOLDER",
        default_help="no attention",
    )
    rerank: PathText | None = setting(
        None,
        help="a cross-encoder that orders what was found in an index: a folder of "
        "sentence-transformers' CrossEncoder, or the output of finetune --task regression",
        unit="FOLDER",
        default_help="the order in which it was found",
    )
    max_body: int = setting(4 << 20, help="largest size of a request", unit="BYTES", at_least=1)
    max_batch: int = setting(128, help="most examples in a request", unit="N", at_least=1)
    max_requests: int = setting(
        64, help="most connections, and requests, at a time", unit="N", at_least=1
    )
    timeout: float = setting(
        60.0,
        help="seconds for a request to arrive, to be computed, and for its response to be read",
        unit="SECONDS",
        above=0,
    )
    poll: float = setting(
        1.0, help="seconds between checks for new version folders", unit="SECONDS", above=0
    )

    def check(self):
        if self.index is None and not self.models:
            raise InputError.naming("Pass {models}, or an index.")
        for name in self.allowed_hosts or ():
            if not re.fullmatch(r"\*|(\*\.)?[^*]+", name):
                raise InputError.naming(
                    "Invalid {allowed_hosts} {!r}. Expected a host name, *.NAME for all names "
                    "under NAME, or * for any.",
                    name,
                )


class AskSettings(Settings):
    """Settings of `keras_bert.ask`, without the texts of an example (`ask_settings`)."""

    url: str = required(
        help="http://HOST:PORT for REST, grpc://HOST:PORT for gRPC", unit="URL", positional=True
    )
    model: str = required(help="the name of the model on the server", unit="NAME")
    data: PathText | None = data_setting(
        None,
        help="the examples as JSON Lines: one object of the model's inputs per line; - is standard "
        "input",
        unit="FILE",
        default_help="pass texts instead",
        common=True,
    )
    version: int | None = setting(
        None,
        help="the version of the model",
        unit="N",
        default_help="the newest",
        at_least=0,
        at_most=2**63 - 1,
    )
    signature: str = setting("serving_default", help="the signature of the model", unit="NAME")
    batch_size: int = optimisation_setting(
        32, help="examples per request", unit="N", at_least=1, common=True
    )
    timeout: float = setting(60.0, help="seconds to wait for a response", unit="SECONDS", above=0)
    metadata: bool = setting(
        False, help="print the versions, inputs and outputs of the model instead of predictions"
    )


@functools.cache
def given_names():
    """The texts of an example, over all task types: text, text_a, …"""
    task_settings = map(settings_class, finetuned_task_types())
    return tuple(
        dict.fromkeys(name for settings in task_settings for name in settings.EXAMPLE_FIELDS)
    )


@functools.cache
def ask_settings():
    """The class of all settings of `ask`, with a list for each of `given_names`."""

    def check(self):
        texts = {name: getattr(self, name) for name in given_names()}
        counts = {name: len(given) for name, given in texts.items() if given is not None}
        if bool(counts) + (self.data is not None) + self.metadata != 1:
            names = arguments(given_names())
            raise InputError.naming("Pass exactly one of {data}, {metadata} and texts ({}).", names)
        if len(set(counts.values())) > 1:
            raise InputError.naming(
                "{} must have the same length. Received: {}.",
                arguments(counts, " and "),
                " and ".join(map(str, counts.values())),
            )

    fields = {
        name: (
            Sequence[str] | None,
            data_setting(
                None,
                help=f"{name.replace('_', ' ')} of an example; may be repeated",
                unit="TEXT",
                default_help="none",
                common=True,
            ),
        )
        for name in given_names()
    }
    return settings_type("AskSettings", (AskSettings,), fields, check=check)
