"""The commands of every page, one after another, as a reader types them.

Models are small, also those of the hub and of `--architecture`, and a run takes a step or an epoch:
`readers_files.FILES` is what the reader of a page has. Without a run, `test_pages.py` parses every
command, with its flags.
"""

import io
import re

import pytest

from keras_bert.cli.main import COMMANDS, main
from keras_bert.encoders import presets
from tests.docs.pages import PAGES, REPOSITORY, blocks, commands
from tests.docs.readers_files import FILES, FURTHER, HUB, write_files
from tests.eagerly import eagerly
from tests.hub.conftest import cache, hub  # noqa: F401  (fixtures)

# Commands, and parts of a line, that are not run here.
NOT_RUN = {
    "serve": "it does not end by itself: tests/serving",
    "ask": "a server is asked: tests/serving",
    "push": "it needs an account: tests/hub/test_push.py",
    "quickstart": "minutes: tests/test_quickstart.py",
    "hf://owner/name": "a name that stands for any",
    "keras-nlp": "keras-hub is not installed for the tests: tests/checkpoints/test_keras_nlp.py",
    "KERAS_BACKEND=jax": "another process: tests/runs_on_jax.py",
    "TPU_NAME=local": "a TPU",
    "--static-vectors": "a model of the page's vocabulary: tests/encoders/test_static.py",
    "--runner=PortableRunner": "a Flink cluster: tests/cluster",
    "--runner=PrismRunner": "Prism: tests/cluster",
    "--runner=DataflowRunner": "Google Cloud: tests/data_gen/test_runners.py",
}
PAGES_NOT_RUN = {
    "CHANGELOG.md": "parts of commands",
    "CONTRIBUTING.md": "commands of the development",
    "docs/benchmarks.md": "hours, on data that are not here",
}
# Values that make a command small.
SMALL = {
    "--steps": "2",
    "--epochs": "1",
    "--batch-size": "4",
    "--chunk-size": "2",
    "--num-seeds": "2",
    "--max-length": "32",
    "--stride": "8",
    "--bilstm": "4",
    "--relative-margin": "0",  # any text that is less similar than the positive is a negative
}
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 16,
    "embedding_size": 16,
    "max_position_embeddings": 128,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "lstm_size": 8,
    "character_filters": ((1, 4), (2, 4)),
}


def name_of(page):
    return str(page.relative_to(REPOSITORY))


def commands_of(page):
    """[(block, command)] of a page, in order."""
    return [(block, command) for block in blocks(page) for command in commands(block)]


def is_run(command):
    name, words = command.arguments[0], [*command.before, *command.arguments]
    parts = NOT_RUN.keys() - COMMANDS.keys()
    return name not in NOT_RUN and not any(part in word for part in parts for word in words)


def small(arguments, further):
    """The arguments with `SMALL` values, and with what "…" stands for."""
    arguments = [part.replace("/shared/", "shared/") for part in arguments if part != "--cased"]
    if "--minutes" in arguments:
        at = arguments.index("--minutes")
        arguments[at : at + 2] = ["--steps", "2"]
    arguments = ["FOLDER" if part == "…" else part for part in arguments] + further
    flag = None
    for number, part in enumerate(arguments):
        if part.startswith("--"):
            flag = part
        elif flag in SMALL and re.fullmatch(r"[\d.]+", part):
            arguments[number] = SMALL[flag]
    if "--gradual-unfreezing" in arguments:  # a layer more in each epoch
        arguments[arguments.index("--epochs") + 1] = "2"
    if arguments[0] in ("finetune", "sweep", "distill") and "--static" not in arguments:
        for given in ("--epochs", "--max-length", "--batch-size"):
            if given not in arguments:
                arguments += [given, SMALL[given]]
    return arguments


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A function: the folder of a model of the hub, which is made when a page first has it."""
    folder = tmp_path_factory.mktemp("published")

    def folder_of(name):
        path = folder / name.replace("/", "+")
        if not path.exists():
            HUB[name](path)
        return path

    return folder_of


@pytest.fixture
def reader(request, hub, published, tmp_path, monkeypatch):  # noqa: F811
    """The reader's folder. The models of the hub and named architectures are small."""
    page = request.node.callspec.params["page"]
    for config in {*presets().values()}:
        small_ones = {
            name: {key: SIZES.get(key, value) for key, value in sizes.items()}
            for name, sizes in config.PRESETS.items()
        }
        monkeypatch.setattr(config, "PRESETS", small_ones)
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for name in (name for name in HUB if name in text):
        hub.add(name, published(name))
    (tmp_path / "reader").mkdir()
    write_files(page, tmp_path / "reader")
    monkeypatch.chdir(tmp_path / "reader")
    return tmp_path / "reader"


@pytest.mark.slow
@pytest.mark.parametrize("page", FILES)
def test_the_commands_of_a_page_run_one_after_another(page, reader, capsys, monkeypatch):
    further = iter(FURTHER.get(page, []))
    for block, command in commands_of(REPOSITORY / page):
        if not is_run(command):
            continue
        added = next(further).split() if command.is_shortened else []
        arguments = small(command.arguments, added)
        if command.before[:1] == ["echo"]:
            lines = io.BytesIO(f"{command.before[1]}\n".encode())
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(lines))
        if arguments[0] == "export":
            status = main(arguments)
        else:
            with eagerly():
                status = main(arguments)
        assert status == 0, f"{block}: {arguments}: {capsys.readouterr().err}"
    assert next(further, None) is None


def test_the_commands_of_every_page_are_run():
    """Pages that have no files here have no commands that can be run."""
    without_files = [
        (name_of(page), command.arguments)
        for page in PAGES
        if name_of(page) not in (*FILES, *PAGES_NOT_RUN)
        for _, command in commands_of(page)
        if is_run(command)
    ]
    assert without_files == []
    run = [sum(is_run(command) for _, command in commands_of(REPOSITORY / page)) for page in FILES]
    assert min(run) >= 1 and sum(run) > 150


def test_every_reason_is_needed():
    words = {
        word
        for page in PAGES
        for _, command in commands_of(page)
        for word in (*command.before, *command.arguments)
    }
    assert [part for part in NOT_RUN if not any(part in word for word in words)] == []
