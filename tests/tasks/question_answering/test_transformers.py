"""The same weights in `transformers`: the same windows, logits and best answers."""

import numpy as np
import pytest

from keras_bert import QuestionAnswerer
from keras_bert.readers.squad import QuestionSource
from keras_bert.tasks.outputs import Inference
from keras_bert.text.tokenizer import Tokenizer
from tests.peers import torch, transformers
from tests.small_model import make_encoder

MAX_LENGTH, STRIDE, LONGEST = 96, 30, 12


@pytest.fixture(scope="module")
def both(minilm_folder, shared_data, tmp_path_factory):
    """(ours, theirs, their tokenizer, questions); the weights are random and large."""
    tokenizer = Tokenizer.from_folder(minilm_folder)
    encoder = make_encoder(tokenizer, max_position_embeddings=MAX_LENGTH, num_hidden_layers=1)
    our_model = QuestionAnswerer(
        encoder,
        tokenizer,
        max_length=MAX_LENGTH,
        stride=STRIDE,
        max_answer_length=LONGEST,
        n_best=3,
    )
    folder = tmp_path_factory.mktemp("both") / "model"
    our_model.save(folder)
    their_model = transformers.BertForQuestionAnswering.from_pretrained(folder).eval()
    questions = list(QuestionSource(shared_data / "xquad" / "en.json"))[::70]
    with torch.no_grad():
        yield (
            our_model,
            their_model,
            transformers.AutoTokenizer.from_pretrained(minilm_folder),
            questions,
        )


def their_windows(tokenizer, their_model, example):
    """[(offsets of the piece, its first token, start and end logits, ids of the row)]."""
    question = tokenizer(example.question, add_special_tokens=False)["input_ids"]
    room = MAX_LENGTH - 3 - len(question)
    sequences = tokenizer(
        example.question,
        example.context,
        truncation="only_second",
        max_length=MAX_LENGTH,
        stride=room - STRIDE,  # theirs is what two windows have in common
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding=True,
        return_tensors="pt",
    )
    names = ("input_ids", "attention_mask", "token_type_ids")
    outputs = their_model(**{name: sequences[name] for name in names})
    token = len(question) + 2
    for number, mask in enumerate(sequences["attention_mask"].numpy()):
        length = int(mask.sum())
        yield (
            sequences["offset_mapping"][number].numpy()[token : length - 1],
            number * STRIDE,
            outputs.start_logits[number].numpy()[:length],
            outputs.end_logits[number].numpy()[:length],
            sequences["input_ids"][number].numpy()[:length],
        )


def best_by_search(windows, token):
    """(start, end) of the best span, looking at every one whose first token has most context."""
    context = {}
    for number, (offsets, first, *_) in enumerate(windows):
        size = len(offsets)
        for place in range(size):
            score = min(place, size - 1 - place) + 0.01 * size
            if first + place not in context or score > context[first + place][0]:
                context[first + place] = (score, number)
    best = (-np.inf, None)
    for number, (offsets, first, starts, ends, _) in enumerate(windows):
        for i in range(len(offsets)):
            if context[first + i][1] != number:
                continue
            for j in range(i, min(i + LONGEST, len(offsets))):
                logit = starts[token + i] + ends[token + j]
                if logit > best[0]:
                    best = (logit, (int(offsets[i][0]), int(offsets[j][1])))
    return best[1]


@pytest.mark.peers
def test_windows_logits_and_answers_are_theirs(both):
    our_model, their_model, tokenizer, questions = both
    sequences = our_model.features(questions)
    outputs = Inference(our_model, batch_size=16).outputs(sequences)
    answers = our_model.decode(outputs, sequences)
    inputs = sequences.inputs(*sequences.take(np.arange(len(sequences))))["input_ids"].numpy()
    several = 0
    for number, (example, answer) in enumerate(zip(questions, answers, strict=True)):
        rows = np.flatnonzero(sequences.example_of_sequence == number)
        windows = list(their_windows(tokenizer, their_model, example))
        assert len(windows) == len(rows)
        several += len(windows) > 1
        for row, (_, first, starts, ends, ids) in zip(rows, windows, strict=True):
            length = sequences.lengths[row]
            assert inputs[row, :length].tolist() == ids.tolist()
            assert sequences.windows.starts[row] == first
            np.testing.assert_allclose(outputs["start_logits"][row][:length], starts, atol=2e-5)
            np.testing.assert_allclose(outputs["end_logits"][row][:length], ends, atol=2e-5)
        best_span = best_by_search(windows, int(sequences.token_starts[rows[0]]))
        assert best_span == (answer["start"], answer["end"])
    assert several > len(questions) // 2
