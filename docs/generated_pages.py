"""Pages that are generated when the site is built: commands, the API, and the tutorials.

Hooks of mkdocs (mkdocs.yml names this file). Their text is that of the source and of the notebooks.
"""

import base64
import dataclasses
import inspect
import json
import logging
import os
import re
import sys
from importlib import import_module
from pathlib import Path

import griffe
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# With `--strict` a warning is an error.
LOGGER = logging.getLogger("mkdocs.hooks.generated_pages")

os.environ["COLUMNS"] = "100"  # how wide argparse writes

COMMANDS = "commands.md"

# The pages of the API: title, and public names.
API = {
    "tasks": (
        "Tasks",
        """load_task Classifier PairClassifier Regressor TextEmbedder MultipleChoice Tagger
        QuestionAnswerer SemanticRoleTagger SpanClassifier RelationClassifier
        CoreferenceResolver FillMask Pretrainer SentenceOrderPretrainer SpanPretrainer CausalLM
        MaskedCausalLM BidirectionalLM ReplacedTokenPretrainer SkipGram Cbow""",
    ),
    "encoders": (
        "Encoders",
        """load BertConfig BertEncoder RobertaConfig RobertaEncoder DistilBertConfig
        DistilBertEncoder ElectraConfig ElectraEncoder MPNetConfig MPNetEncoder AlbertConfig
        AlbertEncoder DebertaConfig DebertaEncoder ModernBertConfig ModernBertEncoder
        OpenAIGptConfig
        Gpt2Config GptEncoder BilmConfig BilmEncoder
        AwdLstmConfig AwdLstmEncoder StaticConfig StaticEncoder ScalarMix with_task_tokens""",
    ),
    "text": (
        "Text and data",
        """Tokenizer Vocabulary WordPieceVocabulary BpeVocabulary GptVocabulary
        ByteLevelVocabulary UnigramVocabulary load_vocabulary learn_vocabulary pretraining_data
        inspect""",
    ),
    "training": ("Training", "pretrain finetune distill sweep glue evaluate compare quickstart"),
    "use": (
        "Using a model",
        """predict predict_files zero_shot show_predictions embed embed_to_file embed_files
        fill_mask follows surprisal pseudo_perplexity generate next_tokens log_probability senses
        SenseVectors word_similarity nearest WordVectors Index load_index index_files
        mine_negatives""",
    ),
    "pictures": (
        "Pictures",
        "draw_run draw_comparison draw_attention draw_contexts draw_similarity draw_surprisal "
        "draw_texts",
    ),
    "serving": (
        "Serving and conversion",
        "export convert serve BackgroundServer ask push diagnose InputError",
    ),
}
NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


def on_config(config):
    """Leaves pages out of the navigation that are not there, and adds those that nobody named."""
    docs = Path(config.docs_dir)
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    nav, named = _held(config.nav, there | {COMMANDS, "api.md", "tutorials.md"})
    lists = {
        "Commands": [COMMANDS, *({name: f"commands/{name}.md"} for name in _all_commands())],
        "API": [{title: f"api/{name}.md"} for name, (title, _) in API.items()],
        "Tutorials": [{title: f"tutorials/{path.stem}.md"} for path, title in _notebooks()],
    }
    nav = [{name: lists.get(name, target) for name, target in item.items()} for item in nav]
    more = sorted(there - named)
    config.nav = nav + ([{"More": more}] if more else [])
    return config


def on_files(files, config):
    """Adds the generated pages."""
    pages = {COMMANDS: _commands()}
    pages |= {f"api/{name}.md": _names(*page) for name, page in API.items()}
    for command in _all_commands():
        pages[f"commands/{command}.md"] = _command(command)
    for path, _ in _notebooks():
        for name, content in _tutorial(path, config.repo_url):
            pages[f"tutorials/{name}"] = content
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def _notebooks():
    """The notebooks as (path, title), in order."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
        yield path, first[0].removeprefix("# ").strip()


# What a notebook says of its install command, which a page with the repository's address has.
_IN_THE_ADDRESS = "; OWNER and NAME are in the notebook's address"


def _tutorial(path, repository):
    """Yields (file name, content): a notebook as a page, and its pictures.

    If the repository is on GitHub, the page has a link that opens the notebook in Colab.
    """
    lines = []
    github = re.fullmatch(r"https://github\.com/([\w-]+/[\w.-]+?)(\.git)?/?", repository or "")
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if "check" in cell["metadata"].get("tags", ()):
            continue
        if cell["cell_type"] == "markdown":
            if github:
                source = source.replace(_IN_THE_ADDRESS, "").replace("OWNER/NAME", github[1])
            source = source.replace("](../docs/", "](../")
            lines += [re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", source), ""]
            if github and number == 0:
                notebook = f"github/{github[1]}/blob/main/notebooks/{path.name}"
                link = f"[Open in Colab](https://colab.research.google.com/{notebook})"
                lines += [f"{link}{{ .md-button }} It has not been run there yet.", ""]
            continue
        lines += ["```python", source, "```", ""]
        for place, output in enumerate(cell["outputs"]):
            data = output.get("data", {"text/plain": output.get("text", "")})
            data = {kind: "".join(value) for kind, value in data.items()}
            if "image/png" in data:
                picture = f"{path.stem}_{number}_{place}.png"
                yield picture, base64.b64decode(data["image/png"])
                lines += [f"![The output of the cell above]({picture})", ""]
            elif "text/html" in data:
                html = re.sub(r"\n\s*\n", "\n", data["text/html"])
                lines += [f'<div class="output">{html}</div>', ""]
            elif data["text/plain"].strip():
                lines += ["```text", data["text/plain"].rstrip(), "```", ""]
    yield f"{path.stem}.md", "\n".join(lines)


def _held(nav, there):
    """A navigation without pages that are not there -> (it, the paths that it names)."""
    entries, named = [], set()
    for item in nav:
        if isinstance(item, str):
            title, target = None, item
        else:
            ((title, target),) = item.items()
        if isinstance(target, list):
            target, inner = _held(target, there)
            named |= inner
        elif target in there:
            named.add(target)
        else:
            continue
        if target:
            entries.append(target if title is None else {title: target})
    return entries, named


def _all_commands():
    from keras_bert.cli.main import COMMANDS

    return COMMANDS


def _commands():
    rows = [
        f"| [{name}](commands/{name}.md) | {command.summary} |"
        for name, command in _all_commands().items()
    ]
    return "\n".join(
        [
            "# Commands",
            "",
            "`keras-bert` by itself shows the way from text to a served model, and the step that "
            "is next in the current folder. Every command has `--help`, ends with what one does "
            "next, and says what is wrong with its input in one sentence, with exit status 2.",
            "",
            "| command | does |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _command(command):
    """A command's page: its description, and its flags as the terminal shows them."""
    description = _all_commands()[command].description
    parts = [f"# keras-bert {command}", "", *_described(command, description)]
    parts += ["## Flags", "", "```", _flags(command), "```", ""]
    if command == "finetune":
        for task_type in _task_types():
            parts += [f"## Flags of `--task {task_type}`", "", *_own_flags(task_type), ""]
    return "\n".join(parts)


def _described(command, text):
    """A description with its paragraphs of commands as blocks.

    Warns of a command that the command line does not parse.
    """
    from keras_bert.base.errors import InputError
    from keras_bert.cli.main import parse
    from tests.docs.pages import Block, commands

    lines, page = [], Path(f"commands/{command}.md")
    for paragraph in text.strip().split("\n\n"):
        if not paragraph.startswith(("keras-bert ", "tail ")):
            lines += [paragraph, ""]
            continue
        lines += ["```bash", paragraph, "```", ""]
        for arguments, _ in commands(Block(page, len(lines), "bash", paragraph)):
            try:
                parse(arguments)
            except (InputError, SystemExit):
                LOGGER.warning("%s: not a command: keras-bert %s", page, " ".join(arguments))
    return lines


def _flags(command):
    """The flags as `--help` prints them, without the text that is above them on the page."""
    from keras_bert.cli.main import make_parser

    _, commands = make_parser([])
    commands[command].description = None
    return commands[command].format_help().rstrip()


def _task_types():
    from keras_bert.tasks import finetuned_task_types

    return finetuned_task_types()


def _own_flags(task_type):
    """The flags of a task type that not every task has."""
    from keras_bert.base.settings import about
    from keras_bert.tasks import TaskSettings, settings_class

    common = {field.name for field in dataclasses.fields(TaskSettings)}
    task_fields = [f for f in dataclasses.fields(settings_class(task_type)) if f.name not in common]
    yield "| flag | says | default |"
    yield "|---|---|---|"
    for field in task_fields:
        default = about(field).default_help if field.default is None else field.default
        says = about(field).help.replace("|", "\\|")
        yield f"| `--{field.name.replace('_', '-')}` | {says} | {default} |"


class ArgumentsOfSettings(griffe.Extension):
    """Shows what settings give a function or a task: its signature and its docstring."""

    def on_function(self, *, func, **options):
        if not any(str(d.value).startswith("takes") for d in func.decorators):
            return
        function = getattr(import_module(func.module.path), func.name)
        func.docstring.value = inspect.getdoc(function)
        func.parameters = _parameters(function)

    def on_class(self, *, cls, **options):
        if not cls.module.path.startswith("keras_bert.tasks.") or cls.docstring is None:
            return
        task = getattr(import_module(cls.module.path), cls.name)
        if "__signature__" in vars(task):
            cls.docstring.value = inspect.getdoc(task)
            init = griffe.Function("__init__", parameters=_parameters(task), parent=cls)
            cls.set_member("__init__", init)


def _parameters(called):
    """The parameters of a function or a class for a page."""
    return griffe.Parameters(
        *(
            griffe.Parameter(
                parameter.name,
                kind=griffe.ParameterKind[parameter.kind.name.lower()],
                annotation=_type(parameter.annotation),
                default=None if parameter.default is parameter.empty else "...",
            )
            for parameter in inspect.signature(called).parameters.values()
        )
    )


def _type(annotation):
    """A type without the modules of its names."""
    name = annotation.__name__ if type(annotation) is type else str(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", name)


def _names(title, names):
    """A page of the API: public names, with their docstrings."""
    lines = [
        f"# {title}",
        "",
        "`import keras_bert as kb`. Nothing heavy is loaded until it is used.",
    ]
    for name in names.split():
        lines += ["", f"::: keras_bert.{name}"]
    return "\n".join([*lines, ""])


def on_page_markdown(markdown, page, config, files):
    """Links to notebooks lead to their pages; to other files of the repository, to nothing."""
    here = page.file.src_uri.count("/")
    markdown = re.sub(
        r"\]\((?:\.\./)+notebooks/(\w+)\.ipynb\)", rf"]({'../' * here}tutorials/\1.md)", markdown
    )
    outside = "../" * (here + 1)
    markdown = markdown.replace(f"]({outside}docs/", f"]({'../' * here}")
    return re.sub(rf"\[([^\]]+)\]\({re.escape(outside)}[^)]+\)", r"\1", markdown)
