"""The settings of the development server and of the client."""

import contextlib
import dataclasses
import functools

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, setting
from keras_bert.tasks import finetuned_kinds, settings_class

_BROUGHT = ("grpc", "requests", "starlette", "tensorflow_serving", "uvicorn")


@contextlib.contextmanager
def needs_extra(who):
    """Around imports: `InputError` where one is missing that the extra `serve` brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _BROUGHT:
            raise
        raise InputError(
            f"{who} needs {missing}, which is not installed; "
            "pip install 'keras-bert-toolkit[serve]' brings it."
        ) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeSettings(Settings):
    """Settings of `keras_bert.serve`."""

    models: list[str] = setting(
        help="an exported model, or a folder of several; the name of each is that of its folder",
        unit="FOLDER",
        is_path=True,
    )
    host: str = setting(
        "127.0.0.1",
        help="the address to listen on; 0.0.0.0 is all of this machine's",
        unit="ADDRESS",
    )
    allowed_hosts: list[str] | None = setting(
        None,
        help="more host names of this server, such as a proxy's; a request over HTTP to any other "
        "name is refused",
        unit="NAME",
        default_help="localhost and `host`",
    )
    rest_port: int = setting(
        8501, help="the port of REST and of the page; 0 is any free one", at_least=0, at_most=65535
    )
    grpc_port: int = setting(
        8500, help="the port of gRPC; 0 is any free one", at_least=0, at_most=65535
    )
    attention: str | None = setting(
        None,
        help="a model folder, not exported, whose attention the page shows",
        unit="FOLDER",
        is_path=True,
        default_help="the page shows none",
    )
    max_body: int = setting(4 << 20, help="bytes of a request", unit="BYTES", at_least=1)
    max_batch: int = setting(
        128, help="examples of a request, and of requests computed together", unit="N", at_least=1
    )
    max_requests: int = setting(
        64, help="requests that are read, waited for or computed at a time", unit="N", at_least=1
    )
    timeout: float = setting(
        60.0,
        help="seconds for a request to arrive, to be computed, and for its answer to be taken",
        unit="SECONDS",
        above=0,
    )
    poll: float = setting(
        1.0, help="seconds between looks for new version folders", unit="SECONDS", above=0
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskSettings(Settings):
    """Settings of `keras_bert.ask`, beside the texts of an example (`ask_settings`)."""

    url: str = setting(
        help="http://HOST:PORT for REST, grpc://HOST:PORT for gRPC", unit="URL", positional=True
    )
    model: str = setting(help="the name of the model on the server", unit="NAME")
    data: str | None = setting(
        None,
        help="the examples: JSON Lines, on each line an object of the model's inputs; - is "
        "standard input",
        unit="FILE",
        is_path=True,
        default_help="give the examples themselves",
    )
    version: int | None = setting(
        None, help="the version of the model", unit="N", default_help="the newest", at_least=0
    )
    signature: str = setting("serving_default", help="the entry point of the model", unit="NAME")
    batch_size: int = setting(32, help="examples of a request", unit="N", at_least=1)
    timeout: float = setting(60.0, help="seconds to wait for an answer", unit="SECONDS", above=0)
    metadata: bool = setting(False, help="print what the model takes and gives in place of answers")


def _is_text(value):
    """Whether a string is text; other bytes of a command line stay in it as surrogates."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@functools.cache
def given_names():
    """What examples of any kind of task consist of where they are written down: text, text_a, …"""
    kinds = map(settings_class, finetuned_kinds())
    return tuple(dict.fromkeys(name for kind in kinds for name in kind.EXAMPLE_FIELDS))


@functools.cache
def ask_settings():
    """The class of all settings of `ask`: with a list for each of `given_names`."""

    def check(self):
        for name in ("model", "signature"):
            if not _is_text(getattr(self, name)):
                raise InputError(f"`{name}` holds bytes that are not UTF-8.")
        given = {name: getattr(self, name) for name in given_names()}
        given = {name: values for name, values in given.items() if values is not None}
        ways = bool(given) + (self.data is not None) + self.metadata
        if ways != 1:
            some = ", ".join(f"`{name}`" for name in given_names())
            raise InputError(f"Give either `data`, a file, or texts ({some}), or `metadata`.")
        if len({len(values) for values in given.values()}) > 1:
            raise InputError(
                f"Give {' and '.join(f'`{name}`' for name in given)} equally often: together they "
                "are an example."
            )

    fields = [
        (
            name,
            list[str] | None,
            setting(
                None,
                help=f"{name.replace('_', ' ')} of an example; may be given several times",
                unit="TEXT",
                default_help="none",
            ),
        )
        for name in given_names()
    ]
    return dataclasses.make_dataclass(
        "AskSettings",
        fields,
        bases=(AskSettings,),
        namespace={"check": check},
        frozen=True,
        kw_only=True,
    )
