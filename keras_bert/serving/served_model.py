"""A model that is served: the folder of its versions, the newest of which answers."""

import contextlib
import gc
from typing import NamedTuple

from keras_bert.serving.model_version import ModelVersion, version_folders
from keras_bert.serving.refusal import Refusal


class State(NamedTuple):
    """What became of a version, in the words of TensorFlow Serving's ModelVersionStatus."""

    state: str
    code: str = "OK"
    message: str = ""


class ServedModel:
    """The versions under a folder. The newest one that loads answers; others are let go.

    A request keeps the version that it came to, so that none is lost when a new one takes over.

    Attributes:
        name: what clients call it.
        states: {version: `State`} of all that were seen.
    """

    def __init__(self, name, folder):
        self.name = name
        self.states = {}
        self._folder = folder
        self._current = None
        self._failed = {}

    def refresh(self):
        """Looks at the folder; loads what is new and lets it take over.

        Returns a sentence for the user where something has changed, else None. One call at a time.

        A version that does not load is tried again once its files have changed. Where the folder of
        the one that answers is gone, the newest of those that are left takes over.
        """
        for folder in reversed(version_folders(self._folder)):
            number = int(folder.name)
            if self._current is not None and number == self._current.number:
                return None
            files = _files(folder)
            if self._failed.get(number) == files:
                continue
            self.states[number] = State("LOADING")
            try:
                version = ModelVersion(folder)
            except Exception as error:  # whatever is in the folder, the server goes on
                self._failed[number] = files
                message = " ".join(str(error).split())
                self.states[number] = State("END", "INTERNAL", message)
                return f"{self.name}: version {number} does not load: {message}"
            if self._current is not None:
                self.states[self._current.number] = State("END")
            self._current = version
            self.states[number] = State("AVAILABLE")
            gc.collect()  # a graph is in circles of its own, and holds its weights
            return f"{self.name}: version {number} answers."
        return None

    def version(self, number=None):
        """The `ModelVersion` that answers; `Refusal` where it is not the asked one."""
        current = self._current  # once: another may take its place meanwhile
        if current is not None and number in (None, current.number):
            return current
        asked = f"Latest({self.name})" if number is None else f"Specific({self.name}, {number})"
        raise Refusal("NOT_FOUND", f"Servable not found for request: {asked}")

    def states_of(self, number=None):
        """[(version, `State`)], the newest first; `Refusal` where there is none."""
        found = [
            (version, state)
            for version, state in sorted(self.states.items(), reverse=True)
            if number in (None, version)
        ]
        if not found:
            which = "" if number is None else f" with version {number}"
            raise Refusal("NOT_FOUND", f"Could not find any versions of model {self.name}{which}")
        return found


def _files(folder):
    """What tells whether a folder has changed."""
    found = []
    with contextlib.suppress(OSError):  # something may be taken away while we look
        for path in folder.rglob("*"):
            status = path.stat()
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return sorted(found)
