"""The token embeddings as TensorBoard's projector shows them: points with the names of pieces."""

import shutil

import keras
import numpy as np
import tensorflow as tf
from tensorboard.plugins import projector

# The projector's own methods (t-SNE, UMAP) take no more, and a browser has to load them.
_MOST_PIECES = 5000


class EmbeddingProjector(keras.callbacks.Callback):
    """Writes the embeddings of the most frequent pieces at the end of a session.

    They lie in the run `folder/embeddings`, in place of those of the session before: `vectors.tsv`,
    `pieces.tsv` (each piece and how often it stands in the training text) and the projector's
    configuration.

    Args:
        folder: the `Path` of the run's logs.
        task: the task, whose tokenizer names the pieces.
        counts: how often each piece stands in the text, (V,); where it is empty, the pieces are in
            the order of the vocabulary, which is that of their frequency in ours.
    """

    def __init__(self, folder, task, counts):
        super().__init__()
        self.folder = folder / "embeddings"
        self.task = task
        self.counts = np.asarray(counts)

    def on_train_end(self, logs=None):
        if self.folder.exists():
            shutil.rmtree(self.folder)
        shown = self._shown()
        # What holds no event is no run, and what is none is not looked into.
        with tf.summary.create_file_writer(str(self.folder)).as_default(step=0):
            tf.summary.text("embeddings", f"{len(shown):,} pieces; see the projector")
        table = np.asarray(self.task.encoder.token_embedding.embeddings, np.float32)
        np.savetxt(self.folder / "vectors.tsv", table[shown], fmt="%.5g", delimiter="\t")
        name = self.task.tokenizer.vocabulary.piece_name
        lines = ["piece\tcount", *(f"{name(int(id))}\t{self._count(id)}" for id in shown)]
        (self.folder / "pieces.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        config = projector.ProjectorConfig()
        config.embeddings.add(
            tensor_name="token embeddings", tensor_path="vectors.tsv", metadata_path="pieces.tsv"
        )
        projector.visualize_embeddings(str(self.folder), config)

    def _shown(self):
        """The ids of the pieces that are shown, the most frequent first."""
        ids = np.arange(len(self.task.tokenizer.vocabulary))
        if len(self.counts):
            ids = np.argsort(-self.counts, kind="stable")
        return ids[:_MOST_PIECES]

    def _count(self, id):
        return self.counts[id] if len(self.counts) else ""
