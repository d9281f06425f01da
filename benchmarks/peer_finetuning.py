"""Fine-tuning with `transformers`, as its own users do it: the peer of finetuning.py.

    python benchmarks/peer_finetuning.py sst2 --model FOLDER --seed 0

trains with `Trainer` on one task of real_tasks.py and prints one line of JSON: the official figures
on the file that is evaluated after each epoch, and the seconds.
"""

import argparse
import json
import logging
import os
import tempfile
import time
from pathlib import Path

STARTED = time.perf_counter()  # what a user waits for begins with the imports
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np  # noqa: E402
import real_tasks  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

IGNORED = -100  # the label that torch's cross-entropy leaves out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=real_tasks.WITH_PEER)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batches", choices=("random", "group_by_length"), default="random")
    parser.add_argument("--learning-rate", type=float, default=real_tasks.RATE)
    parser.add_argument("--bfloat16", action="store_true", help="mixed precision")
    parser.add_argument("--limit", type=int, help="train on the first examples, so many")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.set_seed(arguments.seed)
    kind = real_tasks.TASKS[arguments.task]["task"]
    make = {"tagger": tagging, "question-answering": answering}.get(kind, classification)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        train, dev, model, collator, measure = make(arguments, tokenizer, Path(folder))
        measured = run(arguments, Path(folder), train, dev, model, collator, measure)
    print(json.dumps(measured))


def run(arguments, folder, train, dev, model, collator, measure):
    settings = real_tasks.TASKS[arguments.task]["settings"]
    batch_size, epochs = settings["batch_size"], settings["epochs"]
    steps = -(-len(train) // batch_size) * epochs
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(
            output_dir=str(folder / "run"),
            learning_rate=arguments.learning_rate,
            weight_decay=real_tasks.DECAY,
            warmup_steps=round(real_tasks.WARMUP * steps),
            num_train_epochs=epochs,
            per_device_train_batch_size=batch_size,
            per_device_eval_batch_size=batch_size,
            train_sampling_strategy=arguments.batches,
            seed=arguments.seed,
            use_cpu=True,
            bf16=arguments.bfloat16,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=train,
        data_collator=collator,
    )
    measured = {}
    # Its own sampler by length would give predictions in another order than the rows.
    trainer._get_eval_sampler = torch.utils.data.SequentialSampler
    order = np.arange(len(dev))
    if arguments.batches == "group_by_length":
        order = np.argsort([len(row["input_ids"]) for row in dev.rows], kind="stable")
    dev = Rows([dev.rows[number] for number in order])
    back = np.argsort(order)

    class Measured(transformers.TrainerCallback):
        def on_epoch_end(self, *_, **__):
            logits = trainer.predict(dev).predictions
            in_order = tuple(x[back] for x in logits) if isinstance(logits, tuple) else logits[back]
            measured.update(measure(in_order))

    trainer.add_callback(Measured())
    started = time.perf_counter()
    trainer.train()
    ended = time.perf_counter()
    return {
        **measured,
        "seconds_an_epoch": (ended - started) / epochs,
        "seconds": ended - STARTED,
    }


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return self.rows[number]


def classification(arguments, tokenizer, folder):
    """Labels or scores of one text or two."""
    from scipy import stats
    from sklearn import metrics

    task = real_tasks.TASKS[arguments.task]
    regression = task["task"] == "regression"
    read = getattr(real_tasks, arguments.task)
    (train_texts, train_labels), (dev_texts, dev_labels) = (
        read(arguments.data / file) for file in task["files"]
    )

    def rows(texts, labels):
        encodings = tokenizer(
            *zip(*texts, strict=True), truncation=True, max_length=task["settings"]["max_length"]
        )
        return Rows(
            [
                {**{name: column[n] for name, column in encodings.items()}, "label": label}
                for n, label in enumerate(labels)
            ]
        )

    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        arguments.model, num_labels=1 if regression else len(set(train_labels))
    )

    def measure(logits):
        if regression:
            scores = logits[:, 0]
            return {
                "pearson": float(stats.pearsonr(scores, dev_labels)[0]),
                "spearman": float(stats.spearmanr(scores, dev_labels)[0]),
            }
        predicted = logits.argmax(-1)
        measured = {"accuracy": float(metrics.accuracy_score(dev_labels, predicted))}
        if "f1" in task["figures"]:
            measured["f1"] = float(metrics.f1_score(dev_labels, predicted))
        return measured

    limit = slice(arguments.limit)
    return (
        rows(train_texts[limit], train_labels[limit]),
        rows(dev_texts, dev_labels),
        model,
        transformers.DataCollatorWithPadding(tokenizer),
        measure,
    )


def tagging(arguments, tokenizer, folder):
    """A tag a word, on its first piece."""
    from seqeval import metrics

    task = real_tasks.TASKS[arguments.task]
    read = getattr(real_tasks, arguments.task)
    (train_words, train_tags), (dev_words, dev_tags) = (
        read(arguments.data / file) for file in task["files"]
    )
    labels = sorted({tag for tags in train_tags for tag in tags})
    place = {label: number for number, label in enumerate(labels)}
    length = task["settings"]["max_length"]

    def row(words, tags):
        encoding = tokenizer(words, is_split_into_words=True, truncation=True, max_length=length)
        before, numbers = None, []
        for word in encoding.word_ids():
            numbers.append(place[tags[word]] if word not in (None, before) else IGNORED)
            before = word
        return {**encoding, "labels": numbers}

    # Rows to be answered have words, and 0 for a tag.
    dev_examples = [row(words, [labels[0]] * len(words)) for words in dev_words]

    def measure(logits):
        predicted = []
        for best, line, tags in zip(logits.argmax(-1), dev_examples, dev_tags, strict=True):
            said = [
                labels[number]
                for number, label in zip(best, line["labels"], strict=False)
                if label != IGNORED
            ]
            predicted.append(said + ["O"] * (len(tags) - len(said)))  # words that were cut off
        is_right = [
            said == tag
            for line, tags in zip(predicted, dev_tags, strict=True)
            for said, tag in zip(line, tags, strict=True)
        ]
        measured = {"accuracy": float(np.mean(is_right))}
        if "f1" in task["figures"]:
            measured["f1"] = float(metrics.f1_score(dev_tags, predicted))
        return measured

    model = transformers.AutoModelForTokenClassification.from_pretrained(
        arguments.model, num_labels=len(labels)
    )
    limit = slice(arguments.limit)
    pairs = zip(train_words[limit], train_tags[limit], strict=True)
    return (
        Rows([row(words, tags) for words, tags in pairs]),
        Rows(dev_examples),
        model,
        transformers.DataCollatorForTokenClassification(tokenizer),
        measure,
    )


def answering(arguments, tokenizer, folder):
    """Answers in windows of their paragraph."""
    from keras_bert.tasks.question_answering.metrics import squad_1

    task = real_tasks.TASKS[arguments.task]
    files = real_tasks.squad_parts(arguments.data / task["files"][0], folder)
    train, dev = (list(questions(json.loads(file.read_text()))) for file in files)
    length = task["settings"]["max_length"]

    def windows(some):
        return tokenizer(
            [question["question"] for question in some],
            [question["context"] for question in some],
            truncation="only_second",
            max_length=length,
            stride=128,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )

    encodings = windows(train[slice(arguments.limit)])
    rows = []
    for number, of in enumerate(encodings["overflow_to_sample_mapping"]):
        answer = train[of]["answers"][0]
        begin, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        offsets = encodings["offset_mapping"][number]
        context = [n for n, part in enumerate(encodings.sequence_ids(number)) if part == 1]
        places = [n for n in context if offsets[n][0] < end and offsets[n][1] > begin]
        inside = places and offsets[context[0]][0] <= begin and offsets[context[-1]][1] >= end
        first, last = (places[0], places[-1]) if inside else (0, 0)
        rows.append(
            {
                **{
                    n: encodings[n][number]
                    for n in ("input_ids", "token_type_ids", "attention_mask")
                },
                "start_positions": first,
                "end_positions": last,
            }
        )
    asked = windows(dev)
    dev_examples = [
        {n: asked[n][number] for n in ("input_ids", "token_type_ids", "attention_mask")}
        for number in range(len(asked["input_ids"]))
    ]

    def measure(logits):
        best = {}
        for number, (start, end) in enumerate(zip(*logits, strict=True)):
            of = asked["overflow_to_sample_mapping"][number]
            offsets = asked["offset_mapping"][number]
            places = [n for n, part in enumerate(asked.sequence_ids(number)) if part == 1]
            for i in sorted(places, key=lambda n: -start[n])[:20]:
                for j in sorted(places, key=lambda n: -end[n])[:20]:
                    score = start[i] + end[j]
                    if i <= j < i + 30 and score > best.get(of, (-1e9,))[0]:
                        best[of] = (score, dev[of]["context"][offsets[i][0] : offsets[j][1]])
        texts = [best[n][1] if n in best else "" for n in range(len(dev))]
        measured = squad_1(texts, [[answer["text"] for answer in q["answers"]] for q in dev])
        return {name: measured[name] for name in task["figures"]}

    model = transformers.AutoModelForQuestionAnswering.from_pretrained(arguments.model)
    return (
        Rows(rows),
        Rows(dev_examples),
        model,
        transformers.DataCollatorWithPadding(tokenizer),
        measure,
    )


def questions(squad):
    for article in squad["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield {**question, "context": paragraph["context"]}


if __name__ == "__main__":
    main()
