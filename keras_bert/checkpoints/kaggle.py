"""Models of Kaggle by name: `kaggle://owner/model/framework/variation`, with `/version` after it.

They go through `kagglehub`, which has its own cache (`KAGGLEHUB_CACHE`) and credentials.
"""

import errno
from pathlib import Path

from keras_bert.base.errors import InputError

SCHEME = "kaggle://"


def download(name):
    """The folder in kagglehub's cache that holds a model, as its author published it.

    Raises:
        InputError: the name is none, there is no such model, it cannot be reached or asks for a
            login, the disk is full, or kagglehub is not installed.
    """
    try:
        import kagglehub
    except ImportError:
        raise InputError(
            "Models of Kaggle need kagglehub: pip install 'keras-bert-toolkit[kaggle]'."
        ) from None
    handle = name.removeprefix(SCHEME)
    try:
        return Path(kagglehub.model_download(handle))
    except ValueError as error:
        raise InputError(
            f"{name} names no model of Kaggle: give kaggle://owner/model/framework/variation, and "
            "/version after it for another than the latest."
        ) from error
    except Exception as error:
        sentence = _sentence(name, error)
        if sentence is None:
            raise
        raise InputError(sentence) from error


def _sentence(name, error):
    """What to do about what kagglehub raised; None where it is a fault of ours or of its."""
    import requests

    page = f"https://www.kaggle.com/models/{name.removeprefix(SCHEME)}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 404:
        return f"There is no model {name} at Kaggle: compare the name with its page, {page}."
    if status in (401, 403):
        return (
            f"{name} is shown to known users alone: accept its terms at {page}, and log in with "
            "kagglehub.login()."
        )
    if isinstance(error, requests.exceptions.RequestException):
        return (
            f"{name} is not in kagglehub's cache, and Kaggle cannot be reached: connect to the "
            "network once (a name with its version is then found without), or give a path."
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The disk of kagglehub's cache is full while {name} is fetched: free some space, or "
            "set KAGGLEHUB_CACHE to a folder on another one."
        )
    return None
