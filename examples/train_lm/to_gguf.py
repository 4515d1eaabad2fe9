"""Writes a model from scratch (`--model` of train.py) as a GGUF file, for llama.cpp's server:

    python to_gguf.py policy/model policy.gguf

Models of others go through llama.cpp's own convert_hf_to_gguf.py, which knows their tokenisers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gguf
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

# Names of a layer's weights there and here.
LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}


def interleaved(weights: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of queries or keys as llama.cpp rotates them: neighbours in place of halves of a head."""
    rows, columns = weights.shape
    return weights.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def add_tokeniser(writer: gguf.GGUFWriter, folder: Path) -> None:
    """Our byte-level BPE: it splits texts as GPT-2's does, and adds no token before or behind them."""
    model: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    if model["type"] != "BPE":
        raise SystemExit("this is no tokeniser of ours: use convert_hf_to_gguf.py of llama.cpp")
    end = AutoTokenizer.from_pretrained(folder).eos_token_id
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if number == end else gguf.TokenType.NORMAL for number in range(len(tokens))]
    )
    writer.add_token_merges(merges)
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


def add_shape(writer: gguf.GGUFWriter, config: LlamaConfig) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def add_weights(writer: gguf.GGUFWriter, model: torch.nn.Module, config: LlamaConfig) -> None:
    """All weights in 32 bits: such models are small, and scores are what they were in training."""
    for name, weights in model.state_dict().items():
        stem = name.removesuffix(".weight")
        if stem == "lm_head":  # the embedding once more
            continue
        if stem in WHOLE:
            place = WHOLE[stem]
        else:
            _, _, layer, part = stem.split(".", 3)
            place = f"blk.{layer}.{LAYER[part]}"
            if part == "self_attn.q_proj":
                weights = interleaved(weights, config.num_attention_heads)
            elif part == "self_attn.k_proj":
                weights = interleaved(weights, config.num_key_value_heads)
        writer.add_tensor(place + ".weight", weights.float().contiguous().numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="folder of a trained model")
    parser.add_argument("output", type=Path, help="the .gguf file to write")
    options = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(options.model)
    if model.config.model_type != "llama" or not model.config.tie_word_embeddings:
        raise SystemExit("this is no model from scratch: use convert_hf_to_gguf.py of llama.cpp")
    part = options.output.with_suffix(options.output.suffix + ".part")
    writer = gguf.GGUFWriter(str(part), "llama")
    writer.add_name(options.model.resolve().name)
    add_shape(writer, model.config)
    add_tokeniser(writer, options.model)
    add_weights(writer, model, model.config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(options.output)


if __name__ == "__main__":
    main()
