"""Language models to train: from scratch, known shapes at random weights, or pretrained ones with LoRA.

A model and its tokeniser are saved in Hugging Face's layout, with the card by which mtmc asks it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

END = "<|end|>"

# Models from scratch. The name tells the parameters, embeddings included.
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 128, "layers": 4, "heads": 4, "intermediate_size": 384, "vocabulary": 2048},
    "10m": {"hidden_size": 320, "layers": 6, "heads": 5, "intermediate_size": 896, "vocabulary": 8192},
    "50m": {"hidden_size": 512, "layers": 12, "heads": 8, "intermediate_size": 1536, "vocabulary": 16384},
    "100m": {"hidden_size": 768, "layers": 12, "heads": 12, "intermediate_size": 2048, "vocabulary": 16384},
}

# The shapes of the models that the paper tried, as their publishers give them. No weights come with them.
KNOWN: dict[str, dict[str, Any]] = {
    "deepseek-coder-1.3b": {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "intermediate_size": 5504,
        "vocab_size": 32256,
        "max_position_embeddings": 16384,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100000.0},
        "tie_word_embeddings": False,
    },
    "llama-3.2-1b": {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
            "rope_theta": 500000.0,
        },
        "tie_word_embeddings": True,
    },
    "qwen2.5-1.5b": {
        "model_type": "qwen2",
        "hidden_size": 1536,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "intermediate_size": 8960,
        "vocab_size": 151936,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        "tie_word_embeddings": True,
    },
}


def train_tokeniser(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """A byte-level BPE of our texts. It adds nothing to a text: neither a begin nor an end."""
    tokeniser = Tokenizer(models.BPE())
    tokeniser.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokeniser.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokeniser.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokeniser, bos_token=END, eos_token=END, pad_token=END)


def _ends(tokeniser: PreTrainedTokenizerBase) -> dict[str, Any]:
    return {
        "bos_token_id": tokeniser.bos_token_id,
        "eos_token_id": tokeniser.eos_token_id,
        "pad_token_id": tokeniser.pad_token_id,
    }


def from_scratch(size: str, tokeniser: PreTrainedTokenizerBase, context: int) -> PreTrainedModel:
    """A Llama of one of `SIZES`; `context` is the most tokens of a prompt with an action."""
    shape = SIZES[size]
    config = LlamaConfig(
        vocab_size=len(tokeniser),
        hidden_size=shape["hidden_size"],
        intermediate_size=shape["intermediate_size"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        max_position_embeddings=context,
        tie_word_embeddings=True,
        **_ends(tokeniser),
    )
    return AutoModelForCausalLM.from_config(config)


def known_at_random(name: str, tokeniser: PreTrainedTokenizerBase, dtype: torch.dtype) -> PreTrainedModel:
    """A model of one of the `KNOWN` shapes at random weights: to try out memory and time."""
    shape = {key: value for key, value in KNOWN[name].items() if key != "model_type"}
    kind = Qwen2Config if KNOWN[name]["model_type"] == "qwen2" else LlamaConfig
    return AutoModelForCausalLM.from_config(kind(**shape, **_ends(tokeniser)), dtype=dtype)


def pretrained(path: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Weights and tokeniser from a folder."""
    return (
        AutoModelForCausalLM.from_pretrained(path, dtype=dtype),
        AutoTokenizer.from_pretrained(path),
    )


def with_lora(model: PreTrainedModel) -> PeftModel:
    """Low-rank adapters at the queries and values (rank 8, alpha 16), and nothing else to be trained."""
    return get_peft_model(
        model,
        LoraConfig(task_type="CAUSAL_LM", r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["q_proj", "v_proj"]),
    )


def save(
    folder: Path,
    model: PreTrainedModel | PeftModel,
    tokeniser: PreTrainedTokenizerBase,
    card: dict[str, Any],
    training: dict[str, Any],
) -> None:
    """Weights (an adapter where the model has one), tokeniser, and the card that `HttpPolicy` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(str(folder))
    tokeniser.save_pretrained(str(folder))
    card = {**card, "name": folder.resolve().name, "training": training}
    (folder / "policy_card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
