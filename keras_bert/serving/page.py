"""The page on which a person tries the models: its files, and what it asks beside REST.

Everything else it asks of the models as any other client does.
"""

import asyncio
import functools
from pathlib import Path

import numpy as np
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_model
from keras_bert.pictures.attention import attention_reader
from keras_bert.serving import rest_json
from keras_bert.serving.request_error import RequestError

_FILES = Path(__file__).parent / "page_files"
_VECTOR = "sentence"  # the output of an exported encoder that is a vector a text


def page_routes(server, attention):
    """Starlette's routes of the page over a `ModelServer`.

    Args:
        attention: the folder of the model whose attention is shown, or None.

    Raises:
        InputError: that folder is none.
    """
    read_attention = None if attention is None else attention_reader(*open_model(attention))
    handlers = {
        "/try/models": (functools.partial(_models, server, read_attention is not None), "GET"),
        "/try/vectors": (functools.partial(_vectors, server), "POST"),
        "/try/attention": (functools.partial(_attention, server, read_attention), "POST"),
    }
    routes = [Route(path, handler, methods=[verb]) for path, (handler, verb) in handlers.items()]
    return [*routes, Mount("/", StaticFiles(directory=_FILES, html=True))]


async def _models(server, has_attention, request):
    """The names of the models, and the most texts to ask at a time."""
    answer = {"models": sorted(server.models), "attention": has_attention}
    return JSONResponse({**answer, "batch": min(32, server.max_batch)})


async def _vectors(server, request):
    """{model, texts} -> vectors of length 1, a text each.

    By REST the vectors of all tokens would come along, a hundred times as many numbers.
    """
    asked = rest_json.read_object(await request.body())
    name, texts = asked.get("model"), asked.get("texts")
    if not (isinstance(name, str) and isinstance(texts, list)):
        raise RequestError(
            "INVALID_ARGUMENT", "Give 'model', a name, and 'texts', a list of strings."
        )

    def read_inputs(infos):
        return rest_json.read_inputs({rest_json.ROWS: texts}, infos)[1]

    async with server.request(name, entrypoint="REST"):
        _, outputs = await server.predict(name, None, "", read_inputs)
    if _VECTOR not in outputs:
        raise RequestError("INVALID_ARGUMENT", f"The model {name} gives no vector of a text.")
    vectors = outputs[_VECTOR].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return JSONResponse({"vectors": _rounded(vectors / np.maximum(lengths, 1e-12), 5)})


async def _attention(server, read, request):
    """{text} -> pieces (S), and attention (L, N, S, S): layer, head, from, to."""
    if read is None:
        raise RequestError("NOT_FOUND", "The server was given no model to look into.")
    text = rest_json.read_object(await request.body()).get("text")
    if not isinstance(text, str):
        raise RequestError("INVALID_ARGUMENT", "Give 'text', a string.")
    rest_json.utf8_of("text", text)
    try:
        async with server.time_limit(f"There was no answer within {server.timeout:g} s."):
            tokens, fractions = await asyncio.to_thread(read, text)
    except InputError as error:
        raise RequestError("INVALID_ARGUMENT", str(error)) from None
    return JSONResponse({"pieces": tokens, "attention": _rounded(fractions, 4)})


def _rounded(array, decimals):
    if not np.isfinite(array).all():
        raise RequestError(
            "INTERNAL", "The model gives numbers that are not finite (NaN or infinite)."
        )
    return np.round(array, decimals).tolist()
