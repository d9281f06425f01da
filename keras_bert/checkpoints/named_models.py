"""Models by name and in archives, as model folders of this machine.

What is no Hugging Face folder (a checkpoint of Google's, a preset of keras-nlp) is converted once,
into a cache: `KERAS_BERT_CACHE`, or `keras-bert` in the system's folder for caches. A folder there
has the hash of what it was made of for its name, and may be deleted at any time.
"""

import hashlib
import os
import shutil
from pathlib import Path, PurePosixPath

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_folder, scratch_folder, system_errors
from keras_bert.base.formatting import listed
from keras_bert.checkpoints import archives, hub, kaggle

_CONFIG = "config.json"
_OTHERS = ("bert_config.json", "metadata.json")


def local_folder(given):
    """The folder of a model that is given by name or as an archive; any other path as it is.

    Args:
        given: a path, `hf://owner/name[@revision]`, `kaggle://owner/model/framework/variation`, or
            the path of a `.zip` or `.tar.gz` that holds a model folder, a TF1 checkpoint of
            Google's or a preset of keras-nlp.

    Raises:
        InputError: see `hub.download`, `kaggle.download` and `archives.unpack`; also where what is
            found has no model format that is known.
    """
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            f"A model is given by its folder, name or archive, and not as a {type(given).__name__}."
        )
    text = os.fspath(given)
    if text.startswith(hub.SCHEME):
        return _in_our_form(hub.download(text), name=text)
    if text.startswith(kaggle.SCHEME):
        return _in_our_form(kaggle.download(text), name=text)
    if archives.is_archive(text):
        return _unpacked(text)
    return Path(given)


def is_name(given):
    """Whether a model is given by name, and not as a path."""
    return isinstance(given, str) and given.startswith((hub.SCHEME, kaggle.SCHEME))


def cache_folder():
    """Where converted models are kept."""
    given = os.environ.get("KERAS_BERT_CACHE")
    if given:
        return Path(given)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "keras-bert")


def _in_our_form(folder, *, name):
    """A downloaded folder, or what it is converted to."""
    from keras_bert.checkpoints.keras_nlp import is_keras_nlp

    root = folder / _root(_files_below(folder), name)
    if (root / _CONFIG).exists() and not is_keras_nlp(root):
        return root
    place = _place([root / path for path in sorted(_files_below(root))])
    if not place.exists():
        _convert(root, place, name=name)
    return place


def _unpacked(archive):
    place = _place([Path(archive)])
    if place.exists():
        return place
    with scratch_folder(place) as scratch:
        root = archives.unpack(archive, scratch, root=lambda paths: _root(paths, archive))
        _convert(root, place, name=archive)
    return place


def _convert(source, place, *, name):
    """Puts the model in a folder of any form in its place in the cache."""
    from keras_bert.checkpoints.keras_nlp import is_keras_nlp
    from keras_bert.checkpoints.saving import save_folder

    if (source / _CONFIG).exists() and not is_keras_nlp(source):
        with new_folder(place) as temporary:
            for file in source.iterdir():
                if file.is_file():
                    shutil.copy2(file, temporary)
        return
    try:
        _, model, tokenizer = read_foreign(source)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    save_folder(model, tokenizer, place)


def read_foreign(source):
    """A model in a format that is not Hugging Face's -> (the format's name, model, tokenizer).

    Raises:
        InputError: the folder, or the prefix of a checkpoint, holds none.
    """
    from keras_bert.checkpoints.google import is_google, load_google
    from keras_bert.checkpoints.keras_nlp import is_keras_nlp, load_keras_nlp

    if is_google(source):
        return "google", *load_google(source)
    if is_keras_nlp(source):
        return "keras-nlp", *load_keras_nlp(source)
    if source.is_file():
        raise InputError(f"{source} is a file; give the folder that the model's files lie in.")
    raise InputError(
        f"Could not detect the model format of {source}. Expected a Hugging Face folder "
        "(config.json), a Google checkpoint (bert_config.json) or a keras-nlp preset."
    )


def _place(files):
    """Where in the cache that lies which is made of these files; its parent is there."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    place = cache_folder() / "models" / digest.hexdigest()[:32]
    with system_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _files_below(folder):
    """The paths of all files below a folder, relative to it; none in folders that are links."""
    files, folders = [], [(Path(folder), PurePosixPath())]
    while folders:  # no recursion: somebody's folders may be nested deeper than Python's stack
        place, path = folders.pop()
        for entry in os.scandir(place):
            if entry.is_dir(follow_symlinks=False):
                folders.append((place / entry.name, path / entry.name))
            elif entry.is_file():
                files.append(path / entry.name)
    return files


def _root(paths, name):
    """The folder that a model is in, of a tree with these files, which may have one of its own.

    What is deeper than another is a part of that one; two at the same depth are refused.
    """
    found = sorted(
        {path.parent for path in paths if path.name in (_CONFIG, *_OTHERS)},
        key=lambda folder: (len(folder.parts), folder),
    )
    if len(found) > 1 and len(found[0].parts) == len(found[1].parts):
        raise InputError(
            f"{name} holds several models ({listed(found, most=3)}): give one of them by itself."
        )
    if found:
        return found[0]
    if any(path.name == "saved_model.pb" for path in paths):
        raise InputError(
            f"{name} holds a SavedModel, which does not say the sizes of its encoder; take the "
            "checkpoint with a bert_config.json that it was made of."
        )
    raise InputError(f"{name} holds no model: neither a config.json nor a bert_config.json.")
