# SPDX-License-Identifier: Apache-2.0
"""An engine that notes what it is asked: vLLM's LLM without a model.

install(file) replaces the making of the engine and its generate(); each call adds a line of JSON
to the file. Everything in front of it (arguments, tokenizers, prompts) is vLLM's and the callers'.
"""

import dataclasses
import json
import types

CACHE = types.SimpleNamespace(num_gpu_blocks=1000, block_size=16, enable_prefix_caching=True)


def write(path: str, **what) -> None:
    with open(path, "a", encoding="utf-8") as f:
        f.write(json.dumps(what) + "\n")


def asked(prompt) -> dict:
    return {"prompt": prompt} if isinstance(prompt, str) else dict(prompt)


def described(params) -> str:
    """As they print themselves, 0 and 0.0 alike, and what they leave out of that."""
    text = f"{params!r} detokenize={params.detokenize}"
    return text.replace("temperature=0,", "temperature=0.0,")


def install(path: str) -> None:
    from vllm import LLM

    class Engine:
        def __init__(self, args) -> None:
            model = types.SimpleNamespace(max_model_len=131072, runner_type="generate", model=args.model,
                                          dtype="float32", enforce_eager=True,
                                          get_vocab_size=lambda: 128256)
            config = types.SimpleNamespace(model_config=model, cache_config=CACHE,
                                           compilation_config=None, observability_config=None)
            self.llm_engine = types.SimpleNamespace(model_config=model, vllm_config=config)
            fields = {f.name: getattr(args, f.name) for f in dataclasses.fields(args)}
            write(path, call="engine", fields={k: repr(x) for k, x in fields.items()})

        def generate(self, prompts, sampling_params=None, *, use_tqdm=True, lora_request=None,
                     priority=None):
            params = sampling_params if isinstance(sampling_params, list) else [sampling_params]
            params = params * len(prompts) if len(params) == 1 else params
            write(path, call="generate", prompts=[asked(p) for p in prompts], priority=priority,
                  params=[described(p) for p in params])
            return [types.SimpleNamespace(
                prompt_token_ids=[0], finished=True, metrics=None, num_cached_tokens=0,
                outputs=[types.SimpleNamespace(token_ids=[0] * (p.max_tokens or 1))
                         for _ in range(p.n)]) for p in params]

    LLM.from_engine_args = classmethod(lambda cls, args: Engine(args))


def note_hashes(path: str) -> None:
    """What the hash benchmarks hash: each different value once."""
    import vllm.utils.hashing as hashing

    seen = set()

    def noting(name, inner):
        def outer(data):
            text = repr(data)[:4000]
            if (name, text) not in seen:
                seen.add((name, text))
                write(path, call=name, data=text)
            return inner(data)
        return outer

    for name in ("sha256", "xxhash"):
        setattr(hashing, name, noting(name, getattr(hashing, name)))
