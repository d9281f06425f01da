"""Shows how far a job is, by the shards that stand finished in its output folder."""

import threading

from tqdm import tqdm

_SECONDS = 0.5


class Progress:
    """A progress bar on the terminal while the body of a `with` runs; none where there is none.

    Workers are other processes, on Dataflow other machines; what they have in common with this one
    is the folder that they write into. It is looked at only where that is cheap, on a local disk.
    """

    def __init__(self, folder):
        self._folder = folder
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        if "://" not in self._folder.path:
            self._thread.start()
        return self

    def __exit__(self, *exception):
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self):
        # `disable=None`: no bar where standard error is no terminal.
        with tqdm(desc="Reading the text", unit=" shards", disable=None, leave=False) as bar:
            while not self._done.wait(_SECONDS):
                finished, total = self._folder.shards()
                if total:
                    bar.set_description_str("Writing shards", refresh=False)
                    bar.total = total
                bar.n = finished
                bar.refresh()
