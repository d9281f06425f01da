"""Files and small models that the reader of a page has before its first command, by page.

A string is a text file, and a function makes whatever is at the path that it gets.
"""

import json
from pathlib import Path

import keras_bert as kb
from keras_bert.checkpoints import save_folder
from tests.docs.pages import REPOSITORY, blocks
from tests.encoders.elmo_by_numpy import write_elmo
from tests.inference.test_senses import COSIMLEX, WIC
from tests.pretraining_folder import make_data_folder
from tests.readers.test_labelled_choices import SWAG
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.coreference.test_coreference import FAMILY as COREFERENCE
from tests.tasks.semantic_roles.test_semantic_roles import FAMILY as SEMANTIC_ROLES
from tests.training.test_glue import write_glue

TEXTS = [(f"I was charged {n} times", "billing") for n in range(8)]
TEXTS += [(f"The app crashes {n} times", "bug") for n in range(8)]
CSV = "text,label\n" + "".join(f"{text},{label}\n" for text, label in TEXTS)
TSV = CSV.replace(",", "\t")
SEVERAL = TSV + "It crashes and I was charged\tbug|billing\n"
LINES = "".join(f"{text}.\n" for text, _ in TEXTS)
CORPUS = "\n\n".join(LINES.replace("times", f"days and {n} nights") for n in range(6))
CLASSES = {"train.tsv": TSV, "dev.tsv": TSV, "test.tsv": TSV}
JSON_CLASSES = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in TEXTS)
# Of different letters, so that vectors of random weights differ.
ANSWERS = [f"{one * 4} {other * 4}" for one in "abcdefgh" for other in "stuv"]
PAIRS = "question,answer\n" + "".join(f"what about {one},{one}\n" for one in ANSWERS)
# Columns by their names, and by their numbers.
TWO_TEXTS = "label\tid\ttext_a\ttext_b\n" + "".join(
    f"{n % 2}\t{n}\tA man sits {n}.\tA person sits.\n" for n in range(16)
)
TAGGED = "".join(
    f"-DOCSTART- O\n\nAnn\tB-PER\nlives\tO\nin\tO\nRome\tB-LOC\n{n}\tO\n.\tO\n\n" for n in range(12)
)
SQUAD = json.dumps(
    {
        "version": "v2.0",
        "data": [
            {
                "paragraphs": [
                    {
                        "context": f"It was written by Ann Lee {n}.",
                        "qas": [
                            {
                                "id": f"{n}",
                                "question": "Who wrote it?",
                                "answers": [{"text": "Ann Lee", "answer_start": 18}],
                            }
                        ],
                    }
                    for n in range(8)
                ]
            }
        ],
    }
)
SPANS = 8 * (
    json.dumps({"words": ["Ann", "in", "Rome"], "spans": [[0, 1, "PER"], [2, 3, "LOC"]]}) + "\n"
)
RELATIONS = "".join(
    json.dumps({"words": ["Ann", verb, "Rome"], "head": [0, 1], "tail": [2, 3], "label": label})
    + "\n"
    for verb, label in [("likes", "likes"), ("left", "no_relation")] * 4
)
LISTS = [
    {"query": f"q {n}", "positive": f"good {n}", "negatives": [f"bad {n}", f"worse {n}"]}
    for n in range(16)
]
GRADES = "".join(
    json.dumps({"query": f"q {n}", "passages": ["good", "bad"], "grades": [2, 0]}) + "\n"
    for n in range(16)
)
SCORED = "".join(json.dumps({**row, "scores": [2.0, -1.0, -2.0]}) + "\n" for row in LISTS)
SENSES = "text\tsense\n" + "".join(
    f"{text}\n"
    for text in (
        "She opened an account at the **bank**.\tbank%money",
        "The **bank** lends.\tbank%money",
        "They sat on the **bank** and fished.\tbank%river",
        "Willows grow along the **bank**.\tbank%river",
    )
)
VECTORS = "".join(
    f"{word} {n}.0 1.0 -{n}.5 0.25\n"
    for n, word in enumerate(
        ("bank", "king", "man", "woman", "queen", "Ann", "lives", "in", "Rome"), 1
    )
)


def tokenizer():
    return make_tokenizer(["the", "app", "times", "charged", "crashes"])


def encoder(**changes):
    return make_encoder(
        tokenizer(), **{"num_hidden_layers": 5, "max_position_embeddings": 128, **changes}
    )


def model(path):
    save_folder(encoder(), tokenizer(), path)


def classifier(path):
    kb.Classifier(encoder(), tokenizer(), labels=["billing", "bug"]).save(path)


def entailment(path):
    labels = ["contradiction", "entailment", "neutral"]
    kb.PairClassifier(encoder(), tokenizer(), labels=labels).save(path)


def cross_encoder(path):
    kb.Regressor(encoder(), tokenizer()).save(path)


def embedder(path):
    kb.TextEmbedder(encoder(), tokenizer()).save(path)


def static(path):
    tokens = tokenizer()
    save_folder(
        kb.StaticEncoder(kb.StaticConfig(vocab_size=len(tokens), hidden_size=8)), tokens, path
    )


def static_embedder(path):
    tokens = tokenizer()
    config = kb.StaticConfig(vocab_size=len(tokens), hidden_size=8)
    kb.TextEmbedder(kb.StaticEncoder(config), tokens).save(path)


def pretrained(path):
    kb.Pretrainer(encoder(), tokenizer()).save(path)


def spanbert(path):
    kb.SpanPretrainer(encoder(), tokenizer()).save(path)


def google_checkpoint(path):
    model(path.parent / "to-convert")
    kb.convert(path.parent / "to-convert", path, to="google")


def index(path):
    embedder(path.parent / "embedder")
    texts = [{"id": f"{n}", "text": text} for n, text in enumerate(ANSWERS)]
    kb.Index.build(path.parent / "embedder", texts, output=path)


def data(path):
    make_data_folder(path, rows=48, eval_examples=8)


def masked_by_the_job(path):
    make_data_folder(path, rows=48, eval_examples=8, objective="mlm", masking="dynamic")


def vocabulary(path):
    tokenizer().vocabulary.save(path)


def beir(path):
    path.mkdir()
    rows = [line.split(",") for line in PAIRS.splitlines()[1:]]
    corpus = [json.dumps({"_id": f"d{n}", "text": answer}) for n, (_, answer) in enumerate(rows)]
    queries = [json.dumps({"_id": f"q{n}", "text": asked}) for n, (asked, _) in enumerate(rows)]
    (path / "corpus.jsonl").write_text("\n".join(corpus))
    (path / "queries.jsonl").write_text("\n".join(queries))
    (path / "qrels").mkdir()
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(len(rows)))
    (path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)


def negatives(path):
    import pandas

    rows = [{**row, "negative": row["negatives"][0]} for row in LISTS]
    pandas.DataFrame(rows)[["query", "positive", "negative"]].to_parquet(path)


def glue(path):
    write_glue(path)


def elmo(path):
    write_elmo(path)
    (path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nAnn\nRome\n")


def callback_of_the_page(path):
    page = REPOSITORY / "docs" / "training.md"
    (text,) = (block.text for block in blocks(page) if "class MetricsLogger" in block.text)
    path.write_text(text)


def coreference(path):
    COREFERENCE.write(path, 4, 1)


def semantic_roles(path):
    SEMANTIC_ROLES.write(path, 6, 1)


# By the names that pages call them.
HUB = {
    "google-bert/bert-base-uncased": model,
    "FacebookAI/xlm-roberta-base": model,
    "sentence-transformers/all-MiniLM-L6-v2": embedder,
    "cross-encoder/ms-marco-MiniLM-L6-v2": cross_encoder,
    "cross-encoder/nli-deberta-v3-base": entailment,
    "minishlab/potion-base-8M": static_embedder,
}
TAGGED_FILES = {"train.conll": TAGGED, "dev.conll": TAGGED, "test.conll": TAGGED}
FILES = {
    "README.md": {
        "train.csv": CSV,
        "dev.csv": CSV,
        "texts/a.txt": "To log in, give your name.",
        "texts/b.txt": "The cat sat.",
        "all_tickets.txt": LINES,
        "corpus/a.txt": CORPUS,
    },
    "docs/classification.md": {
        "FOLDER": model,
        "runs/a": model,
        "train.tsv": TWO_TEXTS,
        "dev.tsv": TWO_TEXTS,
        "test.tsv": TWO_TEXTS,
        "data/part-1.csv": CSV.replace("text,label", "subject,queue")
        .replace("\n", ",a\n")
        .replace("queue,a", "queue,body"),
        "dev.csv": CSV.replace("text,label", "subject,queue")
        .replace("\n", ",a\n")
        .replace("queue,a", "queue,body"),
        "choices.csv": "premise,question,a,b,c,answer\n" + 8 * "It rained.,Why?,wet,dry,hot,0\n",
        "negatives.parquet": negatives,
        "grades.jsonl": GRADES,
        "scored.jsonl": SCORED,
        "swag/train.csv": SWAG,
        "swag/val.csv": SWAG,
        "glue": glue,
    },
    "docs/clusters.md": {"shared/run": classifier, "shared/texts/a.csv": CSV},
    "docs/coreference.md": {
        "FOLDER": model,
        "train.conll": coreference,
        "dev.conll": coreference,
        "test.conll": coreference,
    },
    "docs/distribution.md": {"data": data},
    "docs/embeddings.md": {**CLASSES, "FOLDER": pretrained, "texts.txt": LINES},
    "docs/how_to/ask_the_heads.md": {
        "runs/pretrained": pretrained,
        "runs/spanbert": spanbert,
        "texts.txt": LINES,
    },
    "docs/how_to/best_search.md": {"pairs.csv": PAIRS, "beir": beir},
    "docs/how_to/choosing_hyperparameters.md": CLASSES,
    "docs/how_to/continue_in_a_domain.md": {**CLASSES, "tickets/a.txt": CORPUS},
    "docs/how_to/elmo.md": {**TAGGED_FILES, "data": data, "elmo_folder": elmo},
    "docs/how_to/every_month.md": {
        "labelled/a.csv": CSV,
        "test.csv": CSV,
        "new.csv": CSV,
        "runs/march": classifier,
    },
    "docs/how_to/generate_text.md": {"data": data},
    "docs/how_to/gpu.md": CLASSES,
    "docs/how_to/imbalanced_classes.md": CLASSES,
    "docs/how_to/long_texts.md": CLASSES,
    "docs/how_to/multi_label.md": {"train.tsv": SEVERAL, "dev.tsv": SEVERAL},
    "docs/how_to/other_languages.md": {**TAGGED_FILES, "texts/a.txt": CORPUS},
    "docs/how_to/static_vectors.md": {
        **CLASSES,
        **TAGGED_FILES,
        "books/a.txt": CORPUS + 8 * "\nThe king and the man, the woman at the bank.\n",
        "questions-words.txt": ": family\ncharged crashes app times\n",
        "wordsim353.csv": "Word 1,Word 2,Human (mean)\n"
        "charged,crashes,5.0\napp,times,2.0\nthe,app,1.0\n",
        "glove.6B.100d.txt": VECTORS,
        "wiki.en.vec": f"9 4\n{VECTORS}",
        "runs/bert": model,
    },
    "docs/how_to/ulmfit.md": {
        "books/a.txt": CORPUS,
        "train.jsonl": JSON_CLASSES,
        "dev.jsonl": JSON_CLASSES,
    },
    "docs/how_to/word_senses.md": {
        "FOLDER": model,
        "senses.tsv": SENSES,
        "texts.txt": "They sat on the **bank**.\n",
        "cosimlex_en.tsv": COSIMLEX,
        "dev.data.txt": WIC,
        "dev.gold.txt": "F\nF\nT\nT\n",
    },
    "docs/index.md": {},
    "docs/models_by_name.md": {
        **CLASSES,
        "texts.txt": "A text.\n",
        "uncased_L-2_H-128_A-2": google_checkpoint,
    },
    "docs/moving_from_google_bert.md": {
        "corpus/a.txt": CORPUS,
        "vocab.txt": vocabulary,
        "uncased_L-2_H-128_A-2": google_checkpoint,
        "glue": glue,
        "train-v2.0.json": SQUAD,
        "dev-v2.0.json": SQUAD,
        "texts.txt": LINES,
    },
    "docs/moving_from_spanbert.md": {
        "corpus/a.txt": CORPUS,
        "vocab.txt": vocabulary,
        "spanbert-base-cased": spanbert,
        "train.jsonl": RELATIONS,
        "dev.jsonl": RELATIONS,
        "train-v2.0.json": SQUAD,
        "dev-v2.0.json": SQUAD,
    },
    "docs/moving_from_transformers.md": CLASSES,
    "docs/pretraining.md": {
        **CLASSES,
        "corpus/a.txt": CORPUS,
        "vocab.txt": vocabulary,
        "rows-128": data,
        "rows-512": data,
        "quickstart/pretraining-data": data,
    },
    "docs/question_answering.md": {"FOLDER": model, "train.json": SQUAD, "dev.json": SQUAD},
    "docs/search.md": {
        "FOLDER": embedder,
        "texts/a.txt": "To log in, give your name.",
        "texts/b.txt": "The cat sat.",
        "more.csv": "id,text\nc,How to log out\n",
        "texts/a.csv": "id,text\nd,How to log out\n",
        "beir": beir,
    },
    "docs/serving.md": {"runs/classifier": classifier, "runs/tickets": classifier},
    "docs/smaller_models.md": {
        "runs/spam": classifier,
        "messages.txt": LINES,
        "others.txt": LINES,
        "texts.txt": LINES,
        "texts.csv": CSV,
        "dev.csv": CSV,
        "train.csv": CSV,
        "runs/pretrained-mini": model,
    },
    "docs/spans.md": {
        "FOLDER": model,
        "train.jsonl": SPANS,
        "dev.jsonl": SPANS,
        "test.jsonl": SPANS,
        "relations/train.jsonl": RELATIONS,
        "relations/dev.jsonl": RELATIONS,
        "pairs.jsonl": RELATIONS,
    },
    "docs/tagging.md": {
        **TAGGED_FILES,
        "FOLDER": model,
        "train.props": semantic_roles,
        "dev.props": semantic_roles,
        "test.props": semantic_roles,
    },
    "docs/text_vectors.md": {
        "FOLDER": model,
        "pairs.csv": PAIRS,
        "dev.csv": PAIRS,
        "test.csv": PAIRS,
        "texts.index": index,
    },
    "docs/training.md": {
        **CLASSES,
        "FOLDER": model,
        "few.csv": CSV,
        "dev.csv": CSV,
        "tracking.py": callback_of_the_page,
    },
    "docs/your_own_csv.md": {
        "train.csv": CSV,
        "test.csv": CSV,
        "new.csv": CSV,
        "letters/a.txt": "Hello",
    },
}
# What "…" stands for in the shortened commands of a page, in their order.
FURTHER = {
    "docs/classification.md": [
        "--model FOLDER --output runs/joined",
        "--model FOLDER --train train.tsv --dev dev.tsv --output runs/numbers",
        "--model FOLDER --train choices.csv --dev choices.csv --output runs/choices",
    ],
    "docs/embeddings.md": [
        f"--train train.tsv --dev dev.tsv --output runs/mix-{n}" for n in range(3)
    ],
    "docs/training.md": [
        "--model FOLDER --train train.tsv --dev dev.tsv --output runs/lora-of-more",
        "--model FOLDER --train train.tsv --dev dev.tsv",
    ],
}


def write_files(page: str, folder: Path) -> None:
    """Writes what the reader of a page has before its first command."""
    for name, content in FILES[page].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            content(path)
