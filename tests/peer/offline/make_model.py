# SPDX-License-Identifier: Apache-2.0
"""Make a tiny model with random weights that looks at pictures, around a real tokenizer.

usage: make_model.py TOKENIZER_DIR OUT_DIR

TOKENIZER_DIR holds the tokenizer of a Qwen3 model, which has the words that stand for pictures.
Two layers of width 64 for the text, two for the pictures.
"""

import json
import os
import shutil
import sys

import torch
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

WIDTH, LAYERS, HEADS = 64, 2, 2
WORDS = {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>",
         "vision_start_token_id": "<|vision_start|>", "vision_end_token_id": "<|vision_end|>"}
PIXELS = {
    "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2VLProcessor",
    "min_pixels": 56 * 56, "max_pixels": 640 * 640, "patch_size": 14, "temporal_patch_size": 2,
    "merge_size": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}
TEMPLATE = """\
{%- for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}
{%- if m['content'] is string %}{{ m['content'] }}{% else %}
{%- for part in m['content'] %}
{%- if part['type'] in ('image', 'image_url') %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- elif part['type'] in ('video', 'video_url') %}{{ '<|vision_start|><|video_pad|><|vision_end|>' }}
{%- else %}{{ part['text'] }}{% endif %}
{%- endfor %}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def copy_tokenizer(source: str, out: str) -> dict:
    """Without the template of its own, which knows no pictures; all ids by their words."""
    shutil.copyfile(os.path.join(source, "tokenizer.json"), os.path.join(out, "tokenizer.json"))
    with open(os.path.join(source, "tokenizer_config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config.pop("chat_template", None)
    for name, value in (("tokenizer_config", config), ("preprocessor_config", PIXELS)):
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(value, f)
    with open(os.path.join(out, "chat_template.jinja"), "w", encoding="utf-8") as f:
        f.write(TEMPLATE)
    with open(os.path.join(out, "tokenizer.json"), encoding="utf-8") as f:
        document = json.load(f)
    return document["model"]["vocab"] | {t["content"]: t["id"] for t in document["added_tokens"]}


def main() -> None:
    source, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    ids = copy_tokenizer(source, out)
    text = {
        "vocab_size": (max(ids.values()) + 64) // 64 * 64, "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS, "max_position_embeddings": 8192, "bos_token_id": None,
        "eos_token_id": ids["<|im_end|>"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                            "mrope_section": [4, 6, 6]},
    }
    vision = {"depth": LAYERS, "embed_dim": WIDTH, "hidden_size": WIDTH, "num_heads": HEADS,
              "mlp_ratio": 2, "patch_size": 14}
    torch.manual_seed(0)
    config = Qwen2VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True,
                           **{k: ids[word] for k, word in WORDS.items()})
    Qwen2VLForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(out)
    print(f"{out}: {os.path.getsize(out + '/model.safetensors')} bytes")


if __name__ == "__main__":
    main()
