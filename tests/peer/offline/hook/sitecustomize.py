# SPDX-License-Identifier: Apache-2.0
"""Writes down what an engine is asked: with this folder in PYTHONPATH, every call of vLLM's LLM and
AsyncLLM and of transformers' generate() adds a line of JSON to $PROFLLM_PEER_DUMP.

The same file is loaded by upstream's command and by our workers, so both are seen at the same
place: where the engine begins. Without the variable nothing is changed.
"""

import functools
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import sys

FILE = os.environ.get("PROFLLM_PEER_DUMP")


def write(call, **what):
    with open(FILE, "a", encoding="utf-8") as f:
        f.write(json.dumps({"call": call, **what}) + "\n")


def plain(value):
    """Prompts and messages: text and numbers as they are, everything large as a digest."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value if len(value) < 20000 else "sha256:" + hashlib.sha256(value.encode()).hexdigest()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tobytes"):  # a picture or an array
        return [type(value).__name__, hashlib.sha256(value.tobytes()).hexdigest()]
    return type(value).__name__


def params(value):
    """As they print themselves, and what they leave out of that."""
    if isinstance(value, (list, tuple)):
        return [p for v in value for p in params(v)]
    return [f"{value!r} detokenize={getattr(value, 'detokenize', None)}"]


def lora(value):
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [lora(v) for v in value]
    return [value.lora_name, value.lora_int_id, value.lora_path]


def wrapped(name, inner):
    @functools.wraps(inner)
    def outer(self, *rest, **more):
        asked = rest[0] if rest else more.get("prompts", more.get("messages"))
        how = rest[1] if len(rest) > 1 else more.get("sampling_params", more.get("params"))
        write(name, prompts=plain(asked), params=params(how), lora=lora(more.get("lora_request")))
        return inner(self, *rest, **more)

    return outer


def noted(name, inner):
    @functools.wraps(inner)
    def outer(self, *rest, **more):
        write(name, args=plain(rest), more=plain(more))
        return inner(self, *rest, **more)

    return outer


def patch_llm(module):
    for name in ("generate", "chat", "beam_search", "enqueue", "enqueue_chat"):
        if hasattr(module.LLM, name):
            setattr(module.LLM, name, wrapped(name, getattr(module.LLM, name)))
    for name in ("sleep", "wake_up", "start_profile", "stop_profile"):
        setattr(module.LLM, name, noted(name, getattr(module.LLM, name)))


def patch_async(module):
    inner = module.AsyncLLM.generate

    @functools.wraps(inner)
    def generate(self, prompt, sampling_params, request_id, *rest, **more):
        write("async generate", id=request_id, prompts=plain(prompt), params=params(sampling_params),
              lora=lora(more.get("lora_request")))
        return inner(self, prompt, sampling_params, request_id, *rest, **more)

    module.AsyncLLM.generate = generate


def patch_hf(module):
    inner = module.GenerationMixin.generate

    @functools.wraps(inner)
    def generate(self, *rest, **more):
        ids = more.pop("input_ids") if "input_ids" in more else None
        shown = {k: plain(v) for k, v in more.items()}
        write("hf generate", dtype=str(self.dtype), prompts=None if ids is None else ids.tolist(),
              params=shown)
        return inner(self, *rest, **more) if ids is None else inner(self, *rest, input_ids=ids, **more)

    module.GenerationMixin.generate = generate


PATCHES = {
    "vllm.entrypoints.llm": patch_llm,
    "vllm.v1.engine.async_llm": patch_async,
    "transformers.generation.utils": patch_hf,
}


class Finder(importlib.abc.MetaPathFinder):
    """Patches a module right after it has been executed."""

    def find_spec(self, name, path, target=None):
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        inner, patch = spec.loader.exec_module, PATCHES[name]

        def exec_module(module):
            inner(module)
            patch(module)

        spec.loader.exec_module = exec_module
        return spec


if FILE:
    sys.meta_path.insert(0, Finder())
