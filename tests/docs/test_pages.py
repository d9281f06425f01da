"""Every command in README and docs parses, every Python block runs, every link leads somewhere."""

import ast
import contextlib
import importlib.util
import itertools
import json
import re
import shutil
from pathlib import Path
from unittest import mock

import keras
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.cli import task_types
from keras_bert.cli.command import read_flags
from keras_bert.cli.main import COMMANDS, make_parser, parse
from keras_bert.tasks import finetuned_task_types
from tests.docs.pages import (
    PAGES,
    REPOSITORY,
    Block,
    anchors,
    blocks,
    commands,
    commands_in_text,
    links,
    named_flags,
)
from tests.eagerly import eagerly
from tests.hub.conftest import cache, hub  # noqa: F401  (fixtures)
from tests.pretraining_folder import make_data_folder
from tests.small_model import make_encoder, make_tokenizer

BLOCKS = [block for page in PAGES for block in blocks(page)]
NAME = "google-bert/bert-base-uncased"
EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"

# What is not run here, and why.
NOT_RUN = {
    "tf.saved_model.load(": "exporting takes seconds; the tests of exports load what they wrote",
    "kb.distill(": "as kb.finetune; tests/training/test_distill.py has its calls",
    "kb.finetune(": "no step is trained here; tests/training/test_data_in_memory.py has its calls",
    "set_distribution(": "it holds for the whole process, and so for other tests",
}


@pytest.fixture
def as_on_the_page(monkeypatch):
    """Folders that a page speaks of are not here: its commands tell the kind of their task."""
    types_of_models = {}
    monkeypatch.setattr(
        task_types, "task_type_of", lambda model: types_of_models.get(str(model), "classifier")
    )
    monkeypatch.setattr(
        "keras_bert.cli.model_commands.has_data_folder",
        lambda first: first.data in ("data", "data/", "DATA"),
    )
    return types_of_models


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_is_one(page, as_on_the_page):
    for block in blocks(page):
        check_commands(block, as_on_the_page)


def test_every_command_in_the_text_is_one(as_on_the_page):
    wrong = []
    for page in PAGES:
        for line, arguments in commands_in_text(page):
            if arguments[0] in COMMANDS and not {"--help", "--help-all"} & {*arguments}:
                try:
                    parse(arguments)
                except (SystemExit, InputError):
                    wrong.append(f"{page.name}:{line}: {arguments}")
    assert wrong == []


def test_every_command_in_a_description_is_one(as_on_the_page):
    for name, command in COMMANDS.items():
        paragraphs = command.description.split("\n\n")
        for text in (text for text in paragraphs if text.startswith(("keras-bert ", "tail "))):
            check_commands(Block(Path(f"{name}.md"), 1, "bash", text), as_on_the_page)


def check_commands(block, task_types_by_folder):
    for argv, is_shortened in commands(block):
        task = task_types.first_arguments(argv).task
        if task is not None and "--output" in argv:
            task_types_by_folder[argv[argv.index("--output") + 1]] = task
        if not argv or "--help" in argv or argv[0] == "COMMAND":
            continue
        try:
            arguments = parse(argv)
            is_whole = not (is_shortened or {"--glue", "--settings"} & {*argv})
            if hasattr(arguments, "settings_class") and is_whole:
                read_flags(arguments)
        except SystemExit:
            pytest.fail(f"{block}: keras-bert {' '.join(argv)}")
        except InputError as error:
            pytest.fail(f"{block}: keras-bert {' '.join(argv)}: {error}")


def test_every_flag_in_the_text_is_one():
    _, parsers = make_parser([])
    flags = {flag for parser in parsers.values() for flag in parser._option_string_actions}
    for kind in finetuned_task_types():
        _, parsers_of_kind = make_parser(["finetune", "--task", kind])
        flags |= parsers_of_kind["finetune"]._option_string_actions.keys()
    flags |= {"--batches"}  # of `evaluate --data ROWS`
    wrong = [
        f"{page.name}:{line}: {flag}"
        for page in PAGES
        if page.name not in ("CHANGELOG.md", *PAGES_OF_BENCHMARKS)
        for line, flag in named_flags(page)
        if flag not in flags and (page.name, flag) not in FLAGS_OF_OTHERS
    ]
    assert wrong == []


def finetuning_flags():
    """Yields (page or notebook, task type, flag) of every `finetune` that is shown to users."""
    for page in PAGES:
        for block in () if page.name == "CHANGELOG.md" else blocks(page):
            for argv, _ in commands(block):
                first = task_types.first_arguments(argv)
                if first.command == "finetune" and page.name not in PAGES_OF_BENCHMARKS:
                    task_type = task_types.task_type_to_train(first)
                    flags = {word.split("=")[0] for word in argv if word.startswith("--")}
                    yield from ((page.name, task_type, flag) for flag in flags)
    for path in sorted(REPOSITORY.glob("notebooks/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        for call in (
            node
            for source in sources
            if "kb.finetune(" in source
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "kb.finetune"
        ):
            given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            task_type = ast.literal_eval(given["task"]) if "task" in given else "classifier"
            for name in given.keys() - {"report", "callbacks"}:
                yield path.name, task_type, f"--{name.replace('_', '-')}"


def test_the_help_of_finetune_has_the_flags_of_tutorials_and_pages(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown, missing = {}, set()
    for place, task_type, flag in finetuning_flags():
        if task_type not in shown:
            _, parsers = make_parser(["finetune", "--task", task_type, "--help"])
            shown[task_type] = parsers["finetune"].format_help()
        if not re.search(rf"^  {flag}\b", shown[task_type], re.MULTILINE):
            missing.add((flag, task_type, place))
    assert missing == set() and len(shown) > 4
    lines = {line for text in shown.values() for line in text.splitlines()}
    assert [line for line in lines if len(line) > 80] == []


PAGES_OF_BENCHMARKS = ("benchmarks.md",)  # which have flags of their own
FLAGS_OF_OTHERS = {
    ("CONTRIBUTING.md", "--graphs-as-written"),
    ("clusters.md", "--runner"),
    ("search.md", "--runner"),
    ("clusters.md", "--add-opens"),
    ("clusters.md", "--parallelism"),
    ("moving_from_spanbert.md", "--span-upper"),
    ("moving_from_spanbert.md", "--geometric-p"),
}


def test_every_python_block_is_python():
    for block in BLOCKS:
        if block.language in ("python", "py"):
            try:
                ast.parse(block.text)
            except SyntaxError as error:
                pytest.fail(f"{block}: {error}")
        if block.language == "json":
            json.loads(block.text)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with everything that blocks open, under each page's names for it."""
    folder = tmp_path_factory.mktemp("pages")
    words = "win bank the animal did not cross street because it was too tired river lends"
    tokenizer = make_tokenizer(words.split())
    from keras_bert.checkpoints import save_folder

    encoder = make_encoder(tokenizer, num_hidden_layers=1, hidden_size=8)
    save_folder(encoder, tokenizer, folder / "FOLDER")
    for name in ("runs/a/model", "runs/pretrained/model"):
        shutil.copytree(folder / "FOLDER", folder / name)
    kb.FillMask(encoder, tokenizer).save(folder / "FOLDER-OF-A-MASKED-LM")
    config = kb.OpenAIGptConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=64,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    kb.CausalLM(kb.GptEncoder(config), tokenizer).save(folder / "runs/gpt")
    make_data_folder(folder / "data", rows=64, eval_examples=8, objective="mlm")
    shutil.copy(folder / "data/vocab.txt", folder / "words.txt")
    kb.TextEmbedder(encoder, tokenizer, dense="384").save(folder / "EMBEDDER")
    # Pages on layers speak of four of them.
    deeper = make_encoder(tokenizer, num_hidden_layers=4, hidden_size=8)
    save_folder(deeper, tokenizer, folder / "folder")
    return folder


FILES = {
    "train.tsv": "text\tlabel\n" + "win\tspam\nsee you\tham\n" * 17,
    "train.csv": "text,label\n" + "win,spam\nsee you,ham\n" * 17,
    "dev.csv": "text,label\nwin,spam\nsee you,ham\n",
    "tickets.csv": "text,label\n" + "win,spam\nsee you,ham\n" * 455,
    "pairs.tsv": "text_a\ttext_b\tlabel\nwin\tlose\tno\nsee\tlook\tyes\n",
    "pairs.csv": "anchor,positive\n" + "".join(f"win {n},see {n}\n" for n in range(64)),
    "texts.txt": "win a bank\n",
    "train.jsonl": json.dumps({"words": ["in", "Rome"], "spans": [[1, 2, "LOC"]]}) + "\n",
    "train.json": json.dumps(
        {
            "version": "1.1",
            "data": [
                {
                    "title": "a",
                    "paragraphs": [
                        {
                            "context": "by Ann Lee",
                            "qas": [
                                {
                                    "id": "1",
                                    "question": "who?",
                                    "answers": [{"text": "Ann Lee", "answer_start": 3}],
                                }
                            ],
                        }
                    ],
                }
            ],
        }
    ),
}

# What stands in the text around a page's blocks.
GIVEN = {
    "pictures.md": {
        "texts": ["the bank of a river", "a bank lends"],
        "senses": ["river", "money"],
    },
}


def write_files(folder, page):
    for name, text in FILES.items():
        (folder / name).write_text(text)
    if page.name == "classification.md":  # its block is about pairs
        (folder / "train.tsv").write_text(FILES["pairs.tsv"])
    (folder / "dev.tsv").write_text((folder / "train.tsv").read_text())


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.language == "python" for block in blocks(page))],
    ids=lambda page: page.name,
)
def test_the_python_blocks_of_a_page_run_one_after_another(page, place, hub, monkeypatch):  # noqa: F811
    if page.name == "pictures.md" and importlib.util.find_spec("matplotlib") is None:
        pytest.skip("NOT TESTED: matplotlib is not installed")
    hub.add(NAME, place / "FOLDER")
    hub.add(EMBEDDER, place / "EMBEDDER")
    for name in ("my-model", "pairs"):  # of the page before
        shutil.rmtree(place / name, ignore_errors=True)
    write_files(place, page)
    monkeypatch.chdir(place)
    namespace = dict(GIVEN.get(page.name, {}))
    with quickly(), mock.patch("keras_bert.exports.saved_model.export_task"):
        for block in blocks(page):
            if block.language != "python" or any(part in block.text for part in NOT_RUN):
                continue
            try:
                exec(compile(block.text, str(block), "exec"), namespace)
            except Exception as error:
                raise AssertionError(f"{block}: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def quickly():
    """Within it `fit` takes two steps (the second shows tokens/s), and says nothing.

    No function is traced, which would take longer than the steps.
    """
    fit = keras.Model.fit

    def short(model, *args, **options):
        model.run_eagerly = True
        least = {"epochs": 1, "steps_per_epoch": 2}
        if options.get("validation_data") is not None:
            least["validation_steps"] = 1
        return fit(model, *args, **{**options, **least})

    keras.config.disable_interactive_logging()
    try:
        with eagerly(), mock.patch.object(keras.Model, "fit", short):
            yield
    finally:
        keras.config.enable_interactive_logging()


def test_every_link_leads_somewhere():
    wrong = []
    for page in PAGES:
        for line, target in links(page):
            if target.startswith("https://"):
                continue
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve() if path else page
            generated = to.parent == REPOSITORY / "docs" and to.name in GENERATED
            if not (to.exists() or generated) or (
                anchor and to.suffix == ".md" and anchor not in anchors(to)
            ):
                wrong.append(f"{page.name}:{line}: {target}")
    assert wrong == []


def test_every_link_of_a_notebook_leads_somewhere():
    links_in, wrong = re.compile(r"\]\(([^)\s]+)\)"), []
    paths = sorted(REPOSITORY.glob("notebooks/*.ipynb"))
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        for target in itertools.chain.from_iterable(map(links_in.findall, texts)):
            to, _, anchor = target.partition("#")
            to = (path.parent / to).resolve()
            if not target.startswith("https://") and not (
                to.exists() and (not anchor or anchor in anchors(to))
            ):
                wrong.append(f"{path.name}: {target}")
    assert wrong == [] and paths


GENERATED = ("commands.md",)


def test_every_page_and_kind_of_task_is_in_the_site():
    """A page that mkdocs.yml does not name is put under "More" (docs/generated_pages.py)."""
    named = (REPOSITORY / "mkdocs.yml").read_text()
    pages = [path.name for path in (REPOSITORY / "docs").glob("*.md")]
    assert len([name for name in pages if name in named]) >= len(pages) - 3
    text = "".join(page.read_text() for page in PAGES)
    assert all(f"`{kind}`" in text or f"--task {kind}" in text for kind in finetuned_task_types())


def test_every_public_name_is_on_a_page():
    text = "".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")
    assert [
        name for name in kb.__all__ if not re.search(rf"(\bkb\.|\bkeras_bert\.|`){name}\b", text)
    ] == []


def test_blocks_are_found():
    languages = {
        key: len(list(of))
        for key, of in itertools.groupby(
            sorted(BLOCKS, key=lambda block: block.language), key=lambda block: block.language
        )
    }
    assert languages["python"] > 10
    assert sum(1 for block in BLOCKS for _ in commands(block)) > 50
