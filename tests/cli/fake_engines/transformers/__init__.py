# SPDX-License-Identifier: Apache-2.0
"""Stands in for transformers where the tests drive workers/hf_worker.py.

A text has as many tokens as words; an answer is id 9 over and over, with the end (id 2) after
three tokens in every second row unless a minimum is asked for. Calls are noted in FAKE_JOURNAL.
"""
import json
import os
import time

from torch import tensor

__version__ = "5.0.0"


def note(call: str, **more) -> None:
    with open(os.environ["FAKE_JOURNAL"], "a", encoding="utf-8") as f:
        f.write(json.dumps({"call": call, "at_ns": time.monotonic_ns(), **more}) + "\n")


class Encoded(dict):
    pass


class Tokenizer:
    eos_token, pad_token = "</s>", None

    def __call__(self, texts, return_tensors, padding):
        note("tokenize", n=len(texts), pad=self.pad_token)
        counts = [len(t.split()) for t in texts]
        width = max(counts)
        return Encoded(input_ids=tensor([[5] * width for _ in counts]),
                       attention_mask=tensor([[1] * n + [0] * (width - n) for n in counts]))

    def batch_decode(self, rows, skip_special_tokens):
        note("decode", n=len(rows.tolist()))

    def apply_chat_template(self, messages, add_generation_prompt, tokenize):
        return f"<user>{messages[0]['content']}"


class Model:
    class config:
        model_type, max_position_embeddings, vocab_size = "llama", 512, 100

    class generation_config:
        eos_token_id = 2

    dtype, is_compiled = "torch.bfloat16", False

    def to(self, _):
        return self

    def generate(self, input_ids, max_new_tokens, num_return_sequences=1, min_new_tokens=0, **how):
        note("generate", rows=input_ids.shape[0], max=max_new_tokens, min=min_new_tokens,
             compiled=self.is_compiled, how=how)
        rows = []
        for row in input_ids.rows:
            for _ in range(num_return_sequences):
                new = [9] * max_new_tokens
                if len(rows) % 2 and not min_new_tokens:
                    new = [9, 9, 2] + [2] * (max_new_tokens - 3)
                rows.append(row + new)
        return tensor(rows)


class AutoTokenizer:
    @staticmethod
    def from_pretrained(name, **_):
        return Tokenizer()


class AutoModelForCausalLM:
    @staticmethod
    def from_pretrained(name, **how):
        note("load", name=name, keys=sorted(how))
        return Model()
