"""Shows how far a job is, by the shards that stand finished in its output folder."""

import sys
import threading

from tqdm import tqdm

from keras_bert.base.terminal import drawn_on, shows_bars

_SECONDS = 0.5


class Progress:
    """A progress bar on the terminal while the body of a `with` runs; none where there is none.

    It is there from the beginning, since the files of a large input take a while to list. Workers
    are other processes, on Dataflow other machines; what they have in common with this one is the
    folder that they write into. It is looked at only where that is cheap, on a local disk.
    """

    def __init__(self):
        self._folder = None
        self._what = "Listing the input"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._done.set()
        self._thread.join()

    def follow(self, folder, *, files):
        """From here on the job reads so many files, and writes into an `OutputFolder`."""
        self._what = f"Reading {files:,} file{'' if files == 1 else 's'}"
        self._folder = folder

    def _watch(self):
        with tqdm(
            desc=self._what,
            unit=" shards",
            disable=not shows_bars(),
            leave=False,
            file=drawn_on(sys.stderr),
        ) as bar:
            while not self._done.wait(_SECONDS):
                bar.set_description_str(self._what, refresh=False)
                if self._folder is not None and "://" not in self._folder.path:
                    finished, total = self._folder.shards()
                    if total:
                        bar.set_description_str("Writing shards", refresh=False)
                        bar.total = total
                    bar.n = finished
                bar.refresh()
