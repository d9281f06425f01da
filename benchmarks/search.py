"""The search of an index beside faiss's flat index and bm25s, and what an index of a million takes.

    python benchmarks/search.py                        # about ten minutes
    python benchmarks/search.py --parts exact words --rounds 3
    python benchmarks/search.py --parts reranking      # a minute

For reranking sentence-transformers is needed, too. Both sides work in turns in one process, with
two threads each; printed are the medians of seconds and of processor seconds, and theirs divided by
ours, above 1 if ours is faster. Vectors are random, of 384 numbers and the norm 1. Texts are runs
of 19 words of the books in `../shared/data/books`.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "2")

import numpy as np  # noqa: E402
from needed import minilm_folder  # noqa: E402

DATA = Path("../shared/data")
WIDTH, WORDS = 384, 19


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--million", type=int, default=1_000_000)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        memory_of(arguments.memory_of)
        return
    for part in arguments.parts:
        PARTS[part](arguments)


def in_turns(name, our_work, their_work, rounds, repeats=1):
    """Prints what both sides take, after a first turn that warms up."""
    wall, processor = ({"ours": [], "theirs": []} for _ in range(2))
    for turn in range(rounds + 1):
        sides = [("ours", our_work), ("theirs", their_work)]
        for side, work in sides if turn % 2 else sides[::-1]:
            began = time.perf_counter(), time.process_time()
            for _ in range(repeats):
                work()
            if turn:
                wall[side].append((time.perf_counter() - began[0]) / repeats)
                processor[side].append((time.process_time() - began[1]) / repeats)
    for what, seconds in (("wall", wall), ("processor", processor)):
        mine, other = (statistics.median(seconds[side]) for side in ("ours", "theirs"))
        print(f"{name}, {what}: {mine:.4f} s, theirs {other:.4f} s: {other / mine:.2f}", flush=True)


def vectors(count, seed=0):
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((count, WIDTH), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def sentences(folder, count, length=WORDS):
    """Runs of so many words of the books, in a random order."""
    words = [
        word
        for path in sorted((folder / "books").glob("*.txt"))
        for word in path.read_text(encoding="utf-8", errors="replace").split()
    ]
    runs = [" ".join(words[n : n + length]) for n in range(0, len(words) - length, length)]
    random.Random(0).shuffle(runs)
    return runs[:count]


def exact(arguments):
    """1,000 queries in a batch, and single ones."""
    import faiss

    from keras_bert.search.vectors import most_similar

    documents, queries = vectors(arguments.vectors), vectors(1000, seed=1)
    faiss.omp_set_num_threads(2)
    flat = faiss.IndexFlatIP(WIDTH)
    flat.add(documents)
    found, _ = most_similar(queries, [documents], top_k=10)
    same = (found == flat.search(queries, 10)[1]).mean()
    print(
        f"{len(documents):,} x {WIDTH}, top 10: {same:.2%} of the results are the same", flush=True
    )
    half = documents.astype(np.float16)
    for name, some, repeats in (("1,000 queries", queries, 1), ("one query", queries[:1], 20)):
        for dtype, mine in (("float32", documents), ("float16", half)):
            in_turns(
                f"{name}, {dtype}",
                lambda some=some, mine=mine: most_similar(some, [mine], top_k=10),
                lambda some=some: flat.search(some, 10),
                arguments.rounds,
                repeats,
            )


def words(arguments):
    """BM25: indexing, and single queries of eight words."""
    import bm25s

    from keras_bert.search.index import Index
    from keras_bert.search.words import WordReader

    texts = sentences(arguments.data, arguments.texts)
    reader = WordReader()
    began = time.process_time()
    read, counts = reader(texts)
    print(f"{len(texts):,} texts: words {time.process_time() - began:.1f} processor seconds")
    ends = np.cumsum(counts)
    lists = [read[end - count : end] for end, count in zip(ends, counts, strict=True)]
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    began = time.process_time()
    peer.index(lists, show_progress=False)
    print(f"bm25s indexes the words in {time.process_time() - began:.1f} processor seconds")
    given = np.ones((len(texts), 2), np.float32)
    began = time.process_time()
    index = Index.build(None, texts, vectors=given, words=True)
    print(f"an index of them, with reading: {time.process_time() - began:.1f} processor seconds")
    queries = [text_words[:8] for text_words in random.Random(1).sample(lists, 50)]
    snapshot = index._snapshot

    def our_search():
        for query in queries:
            snapshot.ranked(None, [query], top_k=10)

    def their_search():
        for query in queries:
            peer.retrieve([query], k=10, show_progress=False)

    in_turns("50 queries of eight words", our_search, their_search, arguments.rounds)


def indexing(arguments):
    """An index beside the encoding alone."""
    import keras_bert as kb

    warnings.filterwarnings("ignore")
    texts = sentences(arguments.data, 1000)
    embedder = kb.load_task(minilm_folder(data=arguments.data))
    in_turns(
        "1,000 sentences indexed; theirs: encoded",
        lambda: kb.Index.build(embedder, texts),
        lambda: embedder.encode_document(texts),
        min(arguments.rounds, 3),
    )


def reranking(arguments):
    """The latency of one query with 50 passages of 100 words, by a cross-encoder of MiniLM's size.

    Its head has random weights, which change no time.
    """
    import torch
    from sentence_transformers import CrossEncoder

    import keras_bert as kb
    from keras_bert.search.reranking import Reranker

    warnings.filterwarnings("ignore")
    torch.set_num_threads(2)
    texts = sentences(arguments.data, 5000, length=100)
    index = kb.Index.build(None, texts, vectors=np.ones((len(texts), 2)), words=True)
    query = " ".join(texts[0].split()[:8])
    found = index.search_each([query], by="words", top_k=50)
    passages = [row["text"] for row in found[0]]
    encoder, tokenizer = kb.load(minilm_folder(data=arguments.data))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reranker")
        options = {"activation": "identity", "pooling": "cls", "max_length": 256}
        kb.Regressor(encoder, tokenizer, **options).save(path)
        reranker, cross_encoder = Reranker(str(path)), CrossEncoder(str(path), device="cpu")
    scores = reranker.scores([(query, passage) for passage in passages])
    difference = np.abs(scores - cross_encoder.predict([(query, p) for p in passages])).max()
    print(f"{len(passages)} passages: scores differ by at most {difference:.1e}", flush=True)
    in_turns(
        "one query, 50 passages reranked",
        lambda: reranker.reranked([query], found),
        lambda: cross_encoder.rank(query, passages),
        arguments.rounds,
    )
    seconds = []
    for _ in range(arguments.rounds):
        began = time.perf_counter()
        index.search(query, by="words", rerank=reranker)
        seconds.append(time.perf_counter() - began)
    print(f"with the search by words: {statistics.median(seconds):.4f} s", flush=True)


def million(arguments):
    """The time and memory of an index of a million random vectors."""
    from keras_bert.search.index import Index

    texts = [f"text {number}" for number in range(arguments.million)]
    given = vectors(arguments.million)
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("float32", "float16"):
            path = Path(folder, dtype)
            began = time.perf_counter(), time.process_time()
            Index.build(None, texts, vectors=given, output=path, dtype=dtype)
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            print(
                f"{dtype}: built in {time.perf_counter() - began[0]:.0f} s, "
                f"{time.process_time() - began[1]:.0f} processor seconds, {size / 2**20:,.0f} MiB",
                flush=True,
            )
        del given
        for dtype in ("float32", "float16"):
            command = [sys.executable, __file__, "--memory-of", str(Path(folder, dtype))]
            subprocess.run(command, check=True)


def memory_of(folder):
    """Prints the time of queries of an index, and the memory that they take."""
    from keras_bert.search.index import load_index

    def resident():
        with open("/proc/self/status", encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file)
        return {n: int(lines[n].split()[0]) / 1024 for n in ("RssAnon", "RssFile", "VmHWM")}

    before = resident()
    index, one, many = load_index(folder), vectors(1, seed=1), vectors(100, seed=2)
    index.search(vectors=one)
    seconds = []
    for _ in range(5):
        began = time.process_time()
        index.search(vectors=one)
        seconds.append(time.process_time() - began)
    began = time.process_time()
    index.search(vectors=many)
    batch = time.process_time() - began
    after = resident()
    file = sum(path.stat().st_size for path in Path(folder).rglob("vectors.npy")) / 2**20
    print(
        f"{Path(folder).name}: one query {statistics.median(seconds):.3f} processor seconds, 100 "
        f"queries {batch:.2f}; file of vectors {file:,.0f} MiB; memory of its own "
        f"{after['RssAnon'] - before['RssAnon']:,.0f} MiB more, mapped "
        f"{after['RssFile'] - before['RssFile']:,.0f} MiB more, together at most "
        f"{after['VmHWM'] - before['VmHWM']:,.0f} MiB more",
        flush=True,
    )


PARTS = {
    **{"exact": exact, "words": words, "indexing": indexing},
    **{"reranking": reranking, "million": million},
}

if __name__ == "__main__":
    main()
