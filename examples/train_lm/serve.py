"""Serves a trained model to mtmc, for trying it out where no vLLM is: one request at a time, slowly.

    python serve.py policy/model --port 8000

It speaks what token-scored policies need of completions: a prompt that is echoed with the log-probabilities
of its tokens.
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Completions:
    """A model and its tokeniser behind completions."""

    def __init__(self, folder: Path) -> None:
        self.tokeniser = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.name = folder.resolve().name

    @torch.no_grad()
    def echo(self, prompt: str, generate: bool) -> dict[str, Any]:
        """A prompt's tokens, where they begin, and how likely each is after those before it; with `generate`
        the likeliest token behind the prompt as well."""
        encoded = self.tokeniser(prompt, return_offsets_mapping=True)
        ids: list[int] = encoded["input_ids"]
        scores = self.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(1)
        known: list[float | None] = [None, *(float(scores[i, token]) for i, token in enumerate(ids[1:]))]
        offsets = [begin for begin, _ in encoded["offset_mapping"]]
        text = prompt
        if generate:
            ids = [*ids, int(scores[-1].argmax())]
            known.append(float(scores[-1].max()))
            offsets.append(len(prompt))
            text += self.tokeniser.decode(ids[-1:])
        tokens = [self.tokeniser.decode([one]) for one in ids]
        return {"text": text, "logprobs": {"tokens": tokens, "token_logprobs": known, "text_offset": offsets}}

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """A completions request's answer."""
        prompts = question["prompt"]
        generate = question.get("max_tokens", 16) > 0
        choices = [
            {"index": i, "finish_reason": "length", **self.echo(prompt, generate)}
            for i, prompt in enumerate([prompts] if isinstance(prompts, str) else prompts)
        ]
        tokens = sum(len(choice["logprobs"]["tokens"]) for choice in choices)
        generated = len(choices) if generate else 0
        usage = {"prompt_tokens": tokens - generated, "completion_tokens": generated, "total_tokens": tokens}
        return {"object": "text_completion", "model": self.name, "choices": choices, "usage": usage}


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves a trained model to mtmc.")
    parser.add_argument("folder", type=Path, help="a whole model: adapters are merged before")
    parser.add_argument("--port", type=int, default=8000, help="on this machine only")
    given = parser.parse_args()
    completions = Completions(given.folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self._say(200, {"object": "list", "data": [{"id": completions.name, "object": "model"}]})
            else:
                self._say(404, {"error": {"message": "there is no such place"}})

        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/completions" or not question.get("echo"):
                self._say(400, {"error": {"message": "only completions with echo are spoken here"}})
            else:
                self._say(200, completions.answer(question))

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _say(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    print(f"{completions.name} at http://127.0.0.1:{given.port}/v1", flush=True)
    HTTPServer(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
