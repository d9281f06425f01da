"""The tasks on real data that finetuning.py and its peer train: files, settings, official figures.

`../shared/data` has the files (its README says what they are); what they are read as here is plain
Python, the same for both sides. So are the hyper-parameters, those of the literature: AdamW, 5e-5
with a tenth of the steps as warm-up and linear decay to 0, decay 0.01, gradients clipped to norm 1.
The last epoch's model is measured, so that nobody chooses an epoch.
"""

import json
from pathlib import Path

DATA = Path("../shared/data")
RATE, WARMUP, DECAY = 5e-5, 0.1, 0.01
READS_CLS = {"pooling": "cls"}  # as the class of `transformers`; MiniLM's folder asks for the mean
SST2_COLUMNS = {"text_column": "1", "label_column": "2"}  # its files have no header

TASKS = {
    "sst2": {
        "task": "classifier",
        "files": ("sst2/train.tsv", "sst2/dev.tsv"),
        "settings": {"batch_size": 32, "epochs": 3, "max_length": 128},
        "ours": {**READS_CLS, **SST2_COLUMNS},
        "figures": ("accuracy",),
    },
    "mrpc": {
        "task": "pair-classifier",
        "files": ("mrpc/train.tsv", "mrpc/test.tsv"),
        "settings": {"batch_size": 32, "epochs": 3, "max_length": 128},
        "ours": READS_CLS,
        "figures": ("accuracy", "f1"),
    },
    "sts": {
        "task": "regression",
        "files": ("sts/2015.train.tsv", "sts/2015.test.tsv"),
        "settings": {"batch_size": 32, "epochs": 3, "max_length": 128},
        "ours": {**READS_CLS, "fields": "text_a=2,text_b=3,label=1"},
        "figures": ("pearson", "spearman"),
    },
    "wnut17": {
        "task": "tagger",
        "files": ("wnut17/train.conll", "wnut17/dev.conll"),
        "settings": {"batch_size": 16, "epochs": 3, "max_length": 128},
        "figures": ("f1",),
    },
    "wnut17-spans": {  # the same entities, by scoring all spans
        "task": "span-classifier",
        "peer": False,  # nothing of `transformers` does that
        "files": ("wnut17/train.conll", "wnut17/dev.conll"),
        "settings": {"batch_size": 16, "epochs": 3, "max_length": 128},
        "figures": ("f1",),
    },
    "ewt": {
        "task": "tagger",
        "files": ("ud_english_ewt/dev.conllu", "ud_english_ewt/test.conllu"),
        "ours": {},
        "settings": {"batch_size": 16, "epochs": 3, "max_length": 128},
        "figures": ("accuracy",),
    },
    "xquad": {
        "task": "question-answering",
        "files": ("xquad/en.json", "xquad/en.json"),  # parted by paragraph, see `squad_parts`
        "settings": {"batch_size": 16, "epochs": 3, "max_length": 384},
        "figures": ("f1", "exact"),
    },
}

WITH_PEER = [name for name, about in TASKS.items() if about.get("peer", True)]


def table(path):
    """The rows of a TSV, a list of cells each."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def sst2(path):
    """-> (texts, labels)."""
    rows = table(path)
    return [(text,) for text, _ in rows], [int(label) for _, label in rows]


def mrpc(path):
    rows = table(path)[1:]
    return [tuple(row[3:5]) for row in rows], [int(row[0]) for row in rows]


def sts(path):
    """Rows without a score are unscored and left out."""
    rows = [row for row in table(path) if row[0].strip()]
    return [tuple(row[1:3]) for row in rows], [float(row[0]) for row in rows]


def wnut17(path):
    """-> (sentences of words, sentences of tags)."""
    sentences = [[]]
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            sentences[-1].append(line.split("\t")[:2])
        elif sentences[-1]:
            sentences.append([])
    sentences = [sentence for sentence in sentences if sentence]
    return [[w for w, _ in s] for s in sentences], [[t.strip() for _, t in s] for s in sentences]


def ewt(path):
    """Words with their UPOS; multi-word tokens (1-2) and empty nodes (1.1) are no words."""
    sentences = [[]]
    for line in path.read_text(encoding="utf-8").split("\n"):
        cells = line.split("\t")
        if not line:
            sentences.append([])
        elif cells[0].isdecimal():
            sentences[-1].append((cells[1], cells[3]))
    sentences = [sentence for sentence in sentences if sentence]
    return [[w for w, _ in s] for s in sentences], [[t for _, t in s] for s in sentences]


def squad_parts(path, folder):
    """Writes train.json and dev.json, four fifths and one fifth of a SQuAD file's paragraphs."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = [(a["title"], p) for a in articles for p in a["paragraphs"]]
    for name, part in (("train", lambda n: n % 5 != 4), ("dev", lambda n: n % 5 == 4)):
        data = [
            {"title": title, "paragraphs": [paragraph]}
            for number, (title, paragraph) in enumerate(paragraphs)
            if part(number)
        ]
        (folder / f"{name}.json").write_text(json.dumps({"version": "1.1", "data": data}))
    return folder / "train.json", folder / "dev.json"


def first_examples(path, count, folder):
    """Writes the first examples of a file: lines, sentences or questions."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        squad, left = json.loads(text), count
        for article in squad["data"]:
            for paragraph in article["paragraphs"]:
                paragraph["qas"] = paragraph["qas"][:left]
                left -= len(paragraph["qas"])
        content = json.dumps(squad)
    elif path.suffix == ".tsv":
        content = "".join(text.splitlines(keepends=True)[: count + text.startswith("Quality")])
    else:
        lines, sentences = text.split("\n"), 0
        for end, line in enumerate(lines):
            sentences += not line.strip() and end > 0 and bool(lines[end - 1].strip())
            if sentences == count:
                break
        content = "\n".join(lines[: end + 1]) + "\n"
    file = folder / f"first-{count}-{path.parent.name}-{path.name}"
    file.write_text(content, encoding="utf-8")
    return file
