"""Models of the Hugging Face hub by name: `hf://owner/name`, `hf://owner/name@revision`.

All of it goes through `huggingface_hub`: its cache, its token, its environment variables
(`HF_ENDPOINT`, `HF_HOME`, `HF_HUB_OFFLINE` …). What it raises becomes one sentence.
"""

import contextlib
import errno
import os
import re
import sys
from pathlib import Path

from tqdm import tqdm

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.base.terminal import drawn_on, shows_bars
from keras_bert.checkpoints import torch_files
from keras_bert.text.vocabulary import TOKENIZER_FILES

SCHEME = "hf://"
CONFIG = "config.json"

_NAME = re.compile(r"hf://(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")

# A preset of keras-hub, which lies in a repository of its own form.
_PRESET = ("metadata.json", "tokenizer.json", "assets/*", "model.weights.h5", "task.json")

# The first form that a repository has is taken: its mark, and all of its files.
_WEIGHTS = (
    ("model.safetensors", ()),
    ("model.safetensors.index.json", ("model-*-of-*.safetensors",)),
    ("model.weights.h5", _PRESET),
    (torch_files.FILE, ()),
    (torch_files.INDEX, ("pytorch_model-*-of-*.bin",)),
)

_HTTP_TROUBLE = "the hub at {endpoint} answered: {said}"


def download(name):
    """The folder in the hub's cache that holds a model; downloaded are only files that it lacks.

    Those are the config, the tokenizer's files and one form of the weights: safetensors where there
    are some. Without a network, what is in the cache is taken as it is.

    Args:
        name: `hf://owner/name`, with `@` and a branch, a tag or a commit where it is not `main`.

    Raises:
        InputError: the name is none, the hub has no such model or shows it to nobody unknown, it
            cannot be reached, the cache is full, huggingface_hub is not installed, or the weights
            are pickled and torch is not installed or too old. The sentence says what to do.
    """
    repo, revision = parsed(name)
    with _sentences(name, repo, revision):
        small = _snapshot(repo, revision, [CONFIG, *TOKENIZER_FILES])
        held = _files_of(repo, commit=small.name)
        for mark, others in _WEIGHTS:
            if mark in held:
                if mark in (torch_files.FILE, torch_files.INDEX):
                    torch_files.safe_torch(name)  # before gigabytes are fetched
                wanted = [CONFIG, *TOKENIZER_FILES, mark, *others]
                is_news = not (small / mark).exists()
                return _snapshot(repo, small.name, wanted, bars=is_news and shows_bars())
    raise InputError(
        f"{name} holds no weights that can be read: model.safetensors or pytorch_model.bin is "
        f"needed; there are {listed(held, most=6)}."
    )


def config_of(name):
    """The path of a model's `config.json` in the cache, for what is to be known before the rest.

    Raises: as `download`.
    """
    repo, revision = parsed(name)
    with _sentences(name, repo, revision):
        return _snapshot(repo, revision, [CONFIG]) / CONFIG


def parsed(name):
    """`hf://owner/name@revision` -> ("owner/name", "revision"); the revision is None without `@`.

    Raises InputError for what is no such name.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise InputError(
            f"{name} names no model of the hub: give hf://owner/name, or hf://owner/name@revision "
            "for a branch, a tag or a commit."
        )
    return found["repo"], found["revision"]


def upload(repo, files, *, private, revision, message):
    """Commits files to a repository of the hub, which is made where there is none.

    Args:
        repo: "owner/name".
        files: path in the repository -> the path of a file here, or its bytes.
        private: whether the repository is shown to its owner alone: a new one is made so.
        revision: the branch, which is made where there is none; None is `main`.
        message: the first line of the commit.

    Returns:
        The address of the commit.

    Raises:
        InputError: the hub does not let us write there or cannot be reached, the repository exists
            and is public where `private` is asked for, or huggingface_hub is not installed.
    """
    library = _library()
    api = library.HfApi(endpoint=_endpoint(), library_name="keras-bert")
    operations = [
        library.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content)
        for name, content in sorted(files.items())
    ]
    with _rejected_writing(repo):
        api.create_repo(repo, private=private, exist_ok=True)
        # Asked after it was made: one that existed before keeps what it was.
        if private and not api.model_info(repo).private:
            raise InputError(
                f"{repo} exists already and is public, so nothing was pushed. Make it private at "
                f"{_endpoint()}/{repo}/settings, give another name, or leave out `private`."
            )
        if revision is not None:
            api.create_branch(repo, branch=revision, exist_ok=True)
        with _drawing():
            commit = api.create_commit(
                repo, operations, commit_message=message, revision=revision or "main"
            )
    return str(commit.commit_url)


def outside(folder, names):
    """The first of a folder's files that is a link out of it, and where it leads; None if none is.

    A folder in the hub's cache consists of links to files elsewhere in the cache, which are fine.

    Args:
        folder: the folder.
        names: names of files in it.
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
    try:
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError:
        raise InputError(
            "Models of the hub need huggingface_hub: pip install 'keras-bert-toolkit[hub]'."
        ) from None
    return huggingface_hub


def _endpoint():
    """Asked when it is needed: huggingface_hub reads the environment at its import alone."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or _library().constants.ENDPOINT


def _cache():
    return _library().constants.HF_HUB_CACHE


def _snapshot(repo, revision, patterns, *, bars=False):
    """The folder of a revision with the files that match; with `bars`, they show how far it is."""
    with _drawing():
        folder = _library().snapshot_download(
            repo,
            revision=revision,
            allow_patterns=sorted(patterns),
            endpoint=_endpoint(),
            cache_dir=_cache(),
            library_name="keras-bert",
            tqdm_class=None if bars else _NoBar,
        )
    return Path(folder)


def _drawing():
    """A context in which huggingface_hub's bars, which look for `sys.stderr`, can be drawn."""
    return contextlib.redirect_stderr(drawn_on(sys.stderr))


class _NoBar(tqdm):
    """A bar that is not drawn: for what is there already, or takes a moment."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{**options, "disable": True})


def _files_of(repo, *, commit):
    """The names of all files of a repository, from the listing that a download leaves."""
    tree = _library().get_cached_repo_tree(repo, revision=commit, cache_dir=_cache())
    return sorted(file.path for file in tree)


@contextlib.contextmanager
def _sentences(name, repo, revision):
    """Makes one sentence, an InputError, of what the client raises in the body of a `with`."""
    errors = _library().errors
    endpoint = _endpoint()
    try:
        yield
    except InputError:
        raise
    except errors.GatedRepoError as error:
        raise InputError(
            f"{name} is gated: accept its terms at {endpoint}/{repo}, then log in with "
            "`hf auth login`, or set HF_TOKEN to a token of yours."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f"There is no model {repo} at {endpoint}, or it is private: check the name, or log in "
            "with `hf auth login`."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            f"{repo} has no revision {revision}: give a branch, a tag or a commit that is listed "
            f"at {endpoint}/{repo}/commits/main."
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise InputError(_not_in_the_cache(name, endpoint)) from error
    except errors.HfHubHTTPError as error:
        said = _HTTP_TROUBLE.format(endpoint=endpoint, said=str(error).splitlines()[0])
        raise InputError(f"{name}: {said}") from error
    except errors.HFValidationError as error:
        raise InputError(f"{name} names no model of the hub: {error}") from error
    except OSError as error:
        # A client of HTTP has errors of its own, which are no system's.
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"The cache {_cache()} is full while {name} is fetched: free some space there "
                "(`hf cache prune`), or set HF_HOME to a folder on another disk."
            ) from error
        if error.errno in (errno.EACCES, errno.EROFS):
            raise InputError(
                f"The cache {_cache()} cannot be written ({error.strerror}): set HF_HOME to a "
                "folder that can."
            ) from error
        raise
    except Exception as error:
        if not _is_of_the_network(error):
            raise
        raise InputError(_not_in_the_cache(name, endpoint)) from error


@contextlib.contextmanager
def _rejected_writing(repo):
    """As `_sentences` for what a hub says to a push."""
    errors, endpoint = _library().errors, _endpoint()
    try:
        yield
    except InputError:
        raise
    except errors.HfHubHTTPError as error:
        if error.response.status_code in (401, 403, 404):
            raise InputError(
                f"{endpoint} does not let you write {repo}: log in with `hf auth login` and a "
                "token that may write, and give a name under your own user or organisation."
            ) from error
        said = _HTTP_TROUBLE.format(endpoint=endpoint, said=str(error).splitlines()[0])
        raise InputError(f"{repo} was not pushed: {said}") from error
    except ValueError as error:  # of the metadata in README.md
        said = " ".join(str(error).split()).removesuffix(".")
        raise InputError(f"{repo} was not pushed: {said}; mend the model's README.md.") from error
    except Exception as error:
        if not _is_of_the_network(error):
            raise
        raise InputError(
            f"{repo} was not pushed: {endpoint} cannot be reached; the same command tries again."
        ) from error


def _is_of_the_network(error):
    """Whether an error is one of the client's HTTP libraries, which are no `OSError`s."""
    return type(error).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore2")


def _not_in_the_cache(name, endpoint):
    if _library().constants.HF_HUB_OFFLINE:
        return (
            f"{name} is not in the cache {_cache()}, and HF_HUB_OFFLINE forbids to fetch it: unset "
            "it once, or give the path of a folder that holds the model."
        )
    return (
        f"{name} is not in the cache {_cache()}, and {endpoint} cannot be reached: connect to the "
        "network once (afterwards the cache is enough), or give the path of a folder that holds "
        "the model."
    )
