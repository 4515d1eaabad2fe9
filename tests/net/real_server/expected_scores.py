"""Log-probabilities of continuations after contexts, computed by llama-cpp-python itself instead of over HTTP.

Run it with the Python of the prepared folder: DIR/venv/bin/python expected_scores.py DIR/model.gguf < questions.json
On standard input a JSON array of {"context": text, "continuations": [text, ...]}, on standard output an array alike of
{"context_tokens": count, "continuations": [{"tokens": [text, ...], "log_probabilities": [number, ...], "sum": number}]}.

Context and continuation are tokenized together. Where the context's own tokens are no prefix of that, since a token
spans the boundary, the scores begin with the first token that differs, and the continuation has a `context_tokens` of
its own. The first token of all has no probability and is left out: it is <s>, unless the model knows no such thing.
"""

import json
import sys

import llama_cpp
import numpy as np


def log_probabilities(model, tokens, first):
    """Of each token from `first` on, given all before it, from the logits in double precision."""
    model.reset()
    model.eval(tokens)
    logits = np.array(model.scores[first - 1 : len(tokens) - 1], dtype=np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    normalised = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return normalised[np.arange(len(tokens) - first), tokens[first:]]


def common_length(a, b):
    return next((at for at, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def answer(model, question):
    def tokenize(text):
        return model.tokenize(text.encode(), add_bos=True, special=True)

    context = tokenize(question["context"])
    answers = []
    for continuation in question["continuations"]:
        tokens = tokenize(question["context"] + continuation)
        first = max(1, common_length(context, tokens))
        scores = log_probabilities(model, tokens, first) if first < len(tokens) else np.zeros(0)
        pieces = [model.detokenize([token], special=True).decode(errors="replace") for token in tokens[first:]]
        answers.append({"tokens": pieces, "log_probabilities": scores.tolist(), "sum": float(scores.sum())})
        if first != len(context):
            answers[-1]["context_tokens"] = first
    return {"context_tokens": len(context), "continuations": answers}


if __name__ == "__main__":
    float32 = 0  # GGML_TYPE_F32, as in serve.py
    tiny = llama_cpp.Llama(
        sys.argv[1],
        n_ctx=8192,
        n_threads=1,
        n_threads_batch=1,
        type_k=float32,
        type_v=float32,
        logits_all=True,
        verbose=False,
    )
    json.dump([answer(tiny, question) for question in json.load(sys.stdin)], sys.stdout, indent=1)
    print()
