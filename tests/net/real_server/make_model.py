"""Writes a tiny random language model that llama.cpp can load: 2 layers, width 64, 512 tokens, about 0.6 MB.

It says nothing sensible, but it is a whole model: its answers depend on the whole context, it ends answers, it can
encode any text, and it has a chat template. The same arguments give the same file, byte for byte.
"""

import argparse
import collections
import os

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT, VOCABULARY = 2, 64, 4, 128, 8192, 512
SPACE = "\u2581"  # how SentencePiece vocabularies write a space
SPECIAL = ["<unk>", "<s>", "<|im_end|>", "<|im_start|>"]
UNKNOWN, BEGIN, END, START_OF_MESSAGE = range(4)

# What the merges are learnt from: words of kernels, of actions, and of talk about them.
SAMPLE = """
tile the loop over i by 32 fuse the loops in line 15 to 20 reorder the loops unroll the inner loop vectorize the loop
stage the tile in shared memory pipeline the loads with the compute parallelize the outer loop fuse the operators
for (int i = 0; i < N; ++i) for (int j = 0; j < N; ++j) out[i * N + j] = in[j * N + i]; float sum = 0.0f; void kernel(
const float* in, float* out, int M, int N) { return; } the kernel is memory bound and the next action is here
"""

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def learn_merges(count):
    """The pieces that byte-pair encoding makes of SAMPLE, the earliest merge first."""
    words = collections.Counter(SPACE + word for word in SAMPLE.split())
    split = {word: list(word) for word in words}
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += times
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append("".join(best))
        for pieces in split.values():
            at = 0
            while at + 1 < len(pieces):
                if (pieces[at], pieces[at + 1]) == best:
                    pieces[at : at + 2] = ["".join(best)]
                at += 1
    return merges


def make_vocabulary():
    """Tokens with their scores, their types, and how often the model says them: a logit added to each."""
    kind = gguf.TokenType
    rows = [(text, 0.0, kind.CONTROL, -30.0) for text in SPECIAL]
    rows[UNKNOWN] = (SPECIAL[UNKNOWN], 0.0, kind.UNKNOWN, -30.0)
    rows[END] = (SPECIAL[END], 0.0, kind.CONTROL, 3.0)
    # Any text can be encoded, if need be byte by byte; of bytes the model itself says line ends only.
    rows += [(f"<0x{byte:02X}>", 0.0, kind.BYTE, 1.0 if byte == 10 else -30.0) for byte in range(256)]
    characters = [SPACE] + [chr(code) for code in range(33, 127)]
    merges = learn_merges(VOCABULARY - len(rows) - len(characters))
    rows += [(text, -float(rank), kind.NORMAL, 1.0) for rank, text in enumerate(merges)]
    rows += [(text, -1e4 - rank, kind.NORMAL, 0.0) for rank, text in enumerate(characters)]
    while len(rows) < VOCABULARY:
        rows.append((f"<|unused_{len(rows)}|>", 0.0, kind.UNUSED, -30.0))
    return rows


def add_weights(writer, biases, seed):
    random = np.random.default_rng(seed)

    def matrix(rows, columns, scale):
        return random.normal(0.0, scale, (rows, columns)).astype(np.float32)

    # Component 0 of the residual stream is the same everywhere, since nothing writes to it: with it the output
    # matrix, which has no bias, can prefer some tokens to others.
    embedding = matrix(VOCABULARY, WIDTH, 1.0)
    embedding[:, 0] = 4.0
    writer.add_tensor("token_embd.weight", embedding)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.add_tensor(prefix + "attn_norm.weight", np.ones(WIDTH, dtype=np.float32))
        writer.add_tensor(prefix + "ffn_norm.weight", np.ones(WIDTH, dtype=np.float32))
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(prefix + name + ".weight", matrix(WIDTH, WIDTH, 0.25))
        for name, columns in (("attn_output", WIDTH), ("ffn_down", HIDDEN)):
            weights = matrix(WIDTH, columns, 0.25)
            weights[0, :] = 0.0
            writer.add_tensor(f"{prefix}{name}.weight", weights)
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"{prefix}{name}.weight", matrix(HIDDEN, WIDTH, 0.125))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
    output = matrix(VOCABULARY, WIDTH, 0.25)
    output[:, 0] = biases
    writer.add_tensor("output.weight", output)


def write_model(path, seed=1, begin_token=True):
    """`begin_token`: whether the tokenizer puts <s> before every text, as Llama's does and Qwen's does not."""
    texts, scores, types, biases = zip(*make_vocabulary())
    writer = gguf.GGUFWriter(path + ".part", "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_bos_token_id(BEGIN)
    writer.add_eos_token_id(END)
    writer.add_add_bos_token(begin_token)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    add_weights(writer, biases, seed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(path + ".part", path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="the .gguf file to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-begin-token", action="store_true", help="a tokenizer that puts no <s> before a text")
    options = parser.parse_args()
    write_model(options.path, options.seed, not options.no_begin_token)
