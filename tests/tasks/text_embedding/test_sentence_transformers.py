"""The vectors of sentence-transformers itself, for every family, of folders in both directions."""

import numpy as np
import pytest
from tokenizers import Tokenizer

import keras_bert as kb
from keras_bert.checkpoints import load_task
from keras_bert.search.vectors import ranked_documents
from keras_bert.tasks.text_embedding.metrics import retrieval_metrics
from tests.peers import ir_measures, sentence_transformers, torch
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_mpnet_tokenizer, make_tokenizer

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

WORDS = ["w1", "w2", "w3", "query", "zug", "été", "日", "本", "дом"]
TEXTS = ["w1 w2", "", "   ", "W3 Zug, été!", "日本 дом w1", "w1 " * 40, "query: w2", "🙂"]
FAMILIES = {
    "bert": {},
    "roberta": {"pad_token_id": 0},
    "distilbert": {},
    "electra": {},
    "mpnet": {},
    "albert": {"embedding_size": 4},
    "deberta-v2": {
        **{"relative_attention": True, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
        **{"pos_att_type": ("p2c", "c2p"), "position_buckets": 8},
    },
    "modernbert": {"pad_token_id": 0, "local_attention": 8},
}
SETTINGS = {
    "mean": {"normalize": True},
    "cls": {"pooling": "cls", "dense": "5:tanh", "prompts": {"query": "query: ", "passage": "w3 "}},
    "several": {
        **{
            "pooling": "cls+max+mean+mean-sqrt-length+weighted-mean+last",
            "dense": ["7:gelu", "7:residual"],
        },
        **{"prompts": {"query": "query: "}, "default_prompt": "query", "include_prompt": False},
        **{"size": 3, "similarity": "dot"},
    },
    "another order": {"pooling": "last+mean", "dense": "6:no-bias", "lowercase": True},
}


def embedder(family, **settings):
    tokenizer = make_mpnet_tokenizer(WORDS) if family == "mpnet" else make_tokenizer(WORDS)
    encoder = make_encoder(tokenizer, model_type=family, num_hidden_layers=1, **FAMILIES[family])
    task = kb.TextEmbedder(encoder, tokenizer, max_length=16, **settings)
    rng = make_rng(3)
    for layer in task.projections:
        for variable in layer.weights:
            variable.assign(rng.normal(size=variable.shape))
    return task


def opened(folder):
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


def near(vectors, expected):
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(vectors, expected, atol=1e-5 * size)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_written_here_has_the_same_vectors_there(family, name, tmp_path):
    task = embedder(family, **SETTINGS[name])
    task.save(tmp_path / "model")
    their_model = opened(tmp_path / "model")
    near(task.encode(TEXTS), their_model.encode(TEXTS))
    near(task.encode_query(TEXTS), their_model.encode_query(TEXTS))
    # They take the "document" that is always there, empty, before our "passage".
    prompt = task.settings.prompt_of("document")
    near(task.encode_document(TEXTS), their_model.encode(TEXTS, prompt=prompt))
    near(task.encode(TEXTS, prompt_text="w3 "), their_model.encode(TEXTS, prompt="w3 "))
    vectors = task.encode(TEXTS)
    near(task.similarity(vectors, vectors), their_model.similarity(vectors, vectors))
    their_model.save(str(tmp_path / "theirs"))
    again = load_task(tmp_path / "theirs")  # in the names of version 6
    near(again.encode(TEXTS), vectors)
    near(again.encode_query(TEXTS), task.encode_query(TEXTS))


def test_the_document_prompt_differs_where_theirs_is_empty(tmp_path):
    task = embedder("bert", prompts={"passage": "w3 "})
    task.save(tmp_path / "model")
    their_vectors = opened(tmp_path / "model").encode_document(TEXTS)
    assert np.abs(task.encode_document(TEXTS) - their_vectors).max() > 1e-3
    near(task.encode(TEXTS), their_vectors)


def test_a_folder_that_was_made_there_opens_here(tmp_path):
    task = embedder("bert")
    task.save(tmp_path / "model")
    models = sentence_transformers.models
    torch.manual_seed(shifted(3))
    transformer = models.Transformer(str(tmp_path / "model"), max_seq_length=9)
    width = transformer.get_word_embedding_dimension()
    pooling = models.Pooling(width, pooling_mode="weightedmean")
    dense = models.Dense(width, 5, activation_function=torch.nn.Tanh())
    modules = [transformer, pooling, dense, models.Normalize()]
    their_model = sentence_transformers.SentenceTransformer(
        modules=modules, prompts={"query": "w1 "}, device="cpu", similarity_fn_name="euclidean"
    )
    their_model.save(str(tmp_path / "theirs"))
    ours = load_task(tmp_path / "theirs")
    assert ours.settings.max_length == 9 and ours.settings.similarity == "euclidean"
    near(ours.encode(TEXTS), their_model.encode(TEXTS))
    near(ours.encode_query(TEXTS), their_model.encode_query(TEXTS))


def test_static_embeddings_of_there_and_back(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    tokenizer, new_model = make_tokenizer(WORDS), sentence_transformers.SentenceTransformer
    tokenizer.save(tmp_path / "tokenizer")
    models, json_file = sentence_transformers.models, tmp_path / "tokenizer" / "tokenizer.json"
    vectors = make_rng(5).normal(size=(len(tokenizer), 6)).astype("float32")
    static = models.StaticEmbedding(Tokenizer.from_file(str(json_file)), embedding_weights=vectors)
    their_model = new_model(
        modules=[static, models.Normalize()], prompts={"query": "w1 "}, device="cpu"
    )
    their_model.save(str(tmp_path / "theirs"))
    ours = load_task(tmp_path / "theirs")
    near(ours.encode(TEXTS), their_model.encode(TEXTS))
    near(ours.encode_query(TEXTS), their_model.encode_query(TEXTS))
    ours.save(tmp_path / "ours")
    near(opened(tmp_path / "ours").encode_query(TEXTS), their_model.encode_query(TEXTS))


def test_retrieval_with_grades_is_that_of_ir_measures():
    rng = make_rng(4)
    queries, documents = (rng.normal(size=(n, 8)).astype("float32") for n in (12, 60))
    ids = [str(number) for number in range(60)]
    relevant = [
        {ids[n]: float(rng.integers(1, 4)) for n in rng.choice(60, rng.integers(1, 9), False)}
        for _ in queries
    ]
    ranked = ranked_documents(queries, documents, ids)
    names = {"ndcg@10": "nDCG@10", "mrr@10": "RR@10", "map@100": "AP@100", "recall@10": "R@10"}
    names |= {"precision@5": "P@5", "accuracy@3": "Success@3", "recall@1": "R@1"}
    measures = {name: ir_measures.parse_measure(their_name) for name, their_name in names.items()}
    run = {str(q): {id: 1.0 / (1 + n) for n, id in enumerate(r)} for q, r in enumerate(ranked)}
    qrels = {str(q): {id: int(g) for id, g in r.items()} for q, r in enumerate(relevant)}
    expected = ir_measures.calc_aggregate([*measures.values()], qrels, run)
    metrics = retrieval_metrics(ranked, relevant)
    for name, measure in measures.items():
        assert metrics[name] == pytest.approx(expected[measure], abs=1e-6), name
