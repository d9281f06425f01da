"""Models of the Hugging Face hub by name: `hf://owner/name`, `hf://owner/name@revision`.

Everything goes through `huggingface_hub`: its cache, its token, its environment variables
(`HF_ENDPOINT`, `HF_HOME`, `HF_HUB_OFFLINE` …).
"""

import contextlib
import errno
import os
import re
import sys
from pathlib import Path

from keras_bert.base.errors import InputError, input_errors, reason_of
from keras_bert.base.formatting import listed
from keras_bert.base.terminal import drawn_on, shows_bars
from keras_bert.checkpoints import sentence_transformers, tensor_files
from keras_bert.text.vocabulary import TOKENIZER_FILES

SCHEME = "hf://"
CONFIG = "config.json"

ADAPTER = ("adapter_model.safetensors", "adapter_config.json")  # of peft: its weights, its config

_NAME = re.compile(r"hf://(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")

# The folders of `Task.PARTNERS` in a model folder.
PARTNERS = ("generator",)

# The files of a keras-hub preset.
_PRESET = ("metadata.json", "tokenizer.json", "assets/*", "model.weights.h5", "task.json")

# The first form of the weights that a repository has is downloaded: the file that identifies it,
# and the others.
_WEIGHTS = (
    (tensor_files.FILE, ()),
    (tensor_files.INDEX, ("model-*-of-*.safetensors",)),
    ("model.weights.h5", _PRESET),
    (tensor_files.TORCH_FILE, ()),
    (tensor_files.TORCH_INDEX, ("pytorch_model-*-of-*.bin",)),
    (tensor_files.KERAS_FILE, ()),
    (ADAPTER[0], ADAPTER[1:]),
)


def is_name(model):
    """Whether a model is given by name, and not as a path."""
    return isinstance(model, str) and model.startswith(SCHEME)


def download(name):
    """The folder in the hub's cache that contains a model; only missing files are downloaded.

    Those are the config, the tokenizer's files and one form of the weights: safetensors if there
    are some, and an adapter if there is no whole model. Without a network, the cache is used as
    it is. Raises InputError for whatever prevents it: the name, the hub, the network or the disk.
    """
    repo, revision = parsed(name)
    with _download_errors(name, repo, revision):
        files_of_text = [CONFIG, *sentence_transformers.PATTERNS, *TOKENIZER_FILES]
        small = _snapshot(repo, revision, files_of_text)
        tree = _library().get_cached_repo_tree(repo, revision=small.name, cache_dir=_cache())
        files = sorted(file.path for file in tree)
        for mark, others in _WEIGHTS:
            if mark in files:
                if mark in (tensor_files.TORCH_FILE, tensor_files.TORCH_INDEX):
                    tensor_files.safe_torch(name)  # before gigabytes are downloaded
                partner_files = [f"{name}/{file}" for name in PARTNERS for file in (CONFIG, mark)]
                wanted = [*files_of_text, mark, *others, *partner_files]
                is_new = not (small / mark).exists()
                return _snapshot(repo, small.name, wanted, bars=is_new and shows_bars())
    if sentence_transformers.first_module(small)[1]:
        return small  # whose patterns have the weights of a module in a folder of its own
    raise InputError(
        f"{name} contains no supported weights. Expected model.safetensors, pytorch_model.bin or "
        f"{ADAPTER[0]}. Found: {listed(files, most=6)}."
    )


def config_of(name):
    """The path of a model's `config.json` in the cache.

    Only it is downloaded, and what says that the model is a text embedder.
    """
    repo, revision = parsed(name)
    names = [CONFIG, sentence_transformers.MODULES, sentence_transformers.ABOUT]
    with _download_errors(name, repo, revision):
        return _snapshot(repo, revision, names) / CONFIG


def parsed(name):
    """`hf://owner/name@revision` -> ("owner/name", "revision"), which is None without `@`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(
            f"Invalid name of a hub model: {name}. Expected hf://owner/name, or "
            "hf://owner/name@revision for a branch, a tag or a commit."
        )
    return match["repo"], match["revision"]


def upload(repo, files, *, private, revision, message):
    """Commits files to a repository of the hub, and returns the address of the commit.

    Args:
        repo: "owner/name", created if needed; if `private`, visible to its owner only.
        files: path in the repository -> the path of a file here, or its bytes.
        revision: the branch, created if needed; None is `main`.
        message: the first line of the commit.
    """
    library, endpoint = _library(), _endpoint()
    api = library.HfApi(endpoint=endpoint, library_name="keras-bert")
    operations = [
        library.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content)
        for name, content in sorted(files.items())
    ]

    def problem(error):
        if isinstance(error, library.errors.HfHubHTTPError):
            if error.response.status_code in (401, 403, 404):
                return (
                    f"{endpoint} denied the upload to {repo}. Log in with `hf auth login` and a "
                    "token that may write, and use a name under your own user or organisation."
                )
            return f"{repo} was not pushed: {_answer(error, endpoint)}."
        if isinstance(error, ValueError):  # of the metadata in README.md
            reason = " ".join(str(error).split()).removesuffix(".")
            return f"{repo} was not pushed: {reason}. Fix the model's README.md."
        if _is_of_the_network(error):
            return (
                f"{repo} was not pushed: {endpoint} cannot be reached. Run the same command again."
            )
        return None

    with input_errors(problem):
        api.create_repo(repo, private=private, exist_ok=True)
        # Checked after its creation: an existing repository keeps its visibility.
        if private and not api.model_info(repo).private:
            raise InputError.naming(
                "{} exists and is public, so nothing was pushed. Make it private at "
                "{}/{}/settings, use another name, or leave out {private}.",
                repo,
                endpoint,
                repo,
            )
        if revision is not None:
            api.create_branch(repo, branch=revision, exist_ok=True)
        with _drawing():
            commit = api.create_commit(
                repo, operations, commit_message=message, revision=revision or "main"
            )
    return str(commit.commit_url)


def link_outside(folder, names):
    """(name, target) of the first of a folder's files that links out of it; None if none does.

    A folder in the hub's cache consists of links to other files of the cache, which are fine.
    """
    real = Path(os.path.realpath(folder))
    cache = Path(os.path.realpath(_cache()))
    allowed = cache if real.is_relative_to(cache) else real
    for name in names:
        target = Path(os.path.realpath(real / name))
        if not target.is_relative_to(allowed):
            return name, target
    return None


def _library():
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


def _endpoint():
    """Read at each call: huggingface_hub reads the environment only when it is imported."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or _library().constants.ENDPOINT


def _cache():
    return _library().constants.HF_HUB_CACHE


def _snapshot(repo, revision, patterns, *, bars=False):
    """The folder of a revision with the files that match; `bars` show the progress."""
    library = _library()

    class SilentBar(library.utils.tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "disable": True})

    with _drawing():
        folder = library.snapshot_download(
            repo,
            revision=revision,
            allow_patterns=sorted(patterns),
            endpoint=_endpoint(),
            cache_dir=_cache(),
            library_name="keras-bert",
            # The client takes no other bars than its own, and draws them for uploads, too.
            tqdm_class=None if bars else SilentBar,
        )
    return Path(folder)


def _drawing():
    """A context in which the bars of huggingface_hub, which use `sys.stderr`, can be drawn."""
    return contextlib.redirect_stderr(drawn_on(sys.stderr))


def _download_errors(name, repo, revision):
    """A context that turns errors of the client into `InputError`s."""
    errors, endpoint = _library().errors, _endpoint()
    not_cached = (
        f"{name} is not in the cache {_cache()}, and {endpoint} cannot be reached. Connect to the "
        "network once (afterwards the cache suffices), or give the path of a model folder."
    )
    if _library().constants.HF_HUB_OFFLINE:
        not_cached = (
            f"{name} is not in the cache {_cache()}, and HF_HUB_OFFLINE prevents its download. "
            "Unset it once, or give the path of a model folder."
        )

    def message(error):
        match error:
            case errors.GatedRepoError():
                return (
                    f"{name} is gated: accept its terms at {endpoint}/{repo}, then log in with "
                    "`hf auth login`, or set HF_TOKEN to your token."
                )
            case errors.RepositoryNotFoundError():
                return (
                    f"The model {repo} does not exist at {endpoint}, or it is private. Check the "
                    "name, or log in with `hf auth login`."
                )
            case errors.RevisionNotFoundError():
                return (
                    f"{repo} has no revision {revision}. Use a branch, a tag or a commit listed at "
                    f"{endpoint}/{repo}/commits/main."
                )
            case errors.LocalEntryNotFoundError():
                return not_cached
            case errors.HfHubHTTPError():
                return f"{name}: {_answer(error, endpoint)}."
            case errors.HFValidationError():
                return f"Invalid name of a hub model: {name}. {reason_of(error)}."
            # The client's HTTP errors are not `OSError`s.
            case OSError(errno=errno.ENOSPC | errno.EDQUOT):
                return (
                    f"The cache {_cache()} is full: cannot download {name}. Free some space there "
                    "(`hf cache prune`), or set HF_HOME to a folder on another disk."
                )
            case OSError(errno=errno.EACCES | errno.EROFS):
                return (
                    f"The cache {_cache()} cannot be written ({error.strerror}). Set HF_HOME to a "
                    "writable folder."
                )
        return not_cached if _is_of_the_network(error) else None

    return input_errors(message)


def _answer(error, endpoint):
    return f"the hub at {endpoint} answered: {reason_of(error)}"


def _is_of_the_network(error):
    """Whether an error is one of the client's HTTP libraries, which are not `OSError`s."""
    return type(error).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore2")
