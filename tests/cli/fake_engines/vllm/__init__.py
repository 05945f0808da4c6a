# SPDX-License-Identifier: Apache-2.0
"""Stands in for vLLM where the tests drive workers/vllm_worker.py: the same names, no engine.

Every call is a line of JSON in FAKE_JOURNAL with the time it was made at. A text has as many
tokens as words. The model's name says what goes wrong while loading. FAKE_OLD=1 takes away what
releases before 0.12 do not have.
"""
import argparse
import dataclasses
import json
import os
import sys
import time

__version__ = "0.32.0-fake"
IS_OLD = os.environ.get("FAKE_OLD") == "1"


def note(call: str, **more) -> None:
    with open(os.environ["FAKE_JOURNAL"], "a", encoding="utf-8") as f:
        f.write(json.dumps({"call": call, "at_ns": time.monotonic_ns(), **more}) + "\n")


class Thing:
    """What an engine's classes are here: members by name."""

    def __init__(self, **members) -> None:
        self.__dict__.update(members)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class SamplingParams(Thing):
    def __init__(self, n=1, temperature=1.0, top_p=1.0, ignore_eos=False, max_tokens=16,
                 detokenize=True, watermarking=None):
        super().__init__(n=n, temperature=temperature, top_p=top_p, ignore_eos=ignore_eos,
                         max_tokens=max_tokens, detokenize=detokenize, watermarking=watermarking)


class BeamSearchParams(Thing):
    def __init__(self, beam_width, max_tokens, ignore_eos=False):
        super().__init__(beam_width=beam_width, max_tokens=max_tokens, ignore_eos=ignore_eos)


class LoRARequest(Thing):
    def __init__(self, lora_name, lora_int_id, lora_path):
        super().__init__(lora_name=lora_name, lora_int_id=lora_int_id, lora_path=lora_path)


class RequestOutput(Thing):
    pass


class PoolingRequestOutput(Thing):
    pass


class FlexibleArgumentParser(argparse.ArgumentParser):
    pass


def get_adapter_absolute_path(path: str) -> str:
    return "/adapters/" + path


@dataclasses.dataclass
class EngineArgs:
    model: str = "m"
    tokenizer: str = None
    tokenizer_mode: str = "auto"
    trust_remote_code: bool = False
    revision: str = None
    tokenizer_revision: str = None
    max_model_len: int = 128
    enable_mm_processor_stats: bool = False

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model")
        parser.add_argument("--tokenizer")
        parser.add_argument("--no-enable-prefix-caching", action="store_true")
        parser.add_argument("--max-model-len", type=int, default=128)
        return parser

    @classmethod
    def from_cli_args(cls, args):
        names = [f.name for f in dataclasses.fields(cls) if hasattr(args, f.name)]
        return cls(**{name: getattr(args, name) for name in names})


class AsyncEngineArgs(EngineArgs):
    pass


class Tokenizer:
    def apply_chat_template(self, messages, add_generation_prompt, tokenize, tools=None):
        text = "".join(f"<{m['role']}>{m['content']}" for m in messages)
        return text + (f"<tools {len(tools)}>" if tools else "") + "<assistant>"

    def encode(self, text):
        return text.split()


def get_tokenizer(name, **how):
    note("get_tokenizer", name=name)
    return Tokenizer()


def ids_of(prompt) -> list:
    if "prompt_token_ids" in prompt:
        return prompt["prompt_token_ids"]
    return list(range(len(prompt["prompt"].split())))


def answer(i: int, ids: list, p: SamplingParams) -> RequestOutput:
    made = [Thing(index=k, token_ids=[7] * p.max_tokens) for k in range(p.n)]
    metrics = Thing(first_token_latency=0.25, first_token_ts=100.0, last_token_ts=100.5 + i)
    return RequestOutput(prompt_token_ids=ids, outputs=made, finished=True, metrics=metrics)


def fail_as(model: str) -> None:
    if model == "too-large":
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    if model == "nowhere/at-all":
        raise OSError("nowhere/at-all is not a local folder and is not a valid model identifier")
    if model == "core-dies":
        print("(EngineCore pid=7) ValueError: max_num_seqs must be 1", file=sys.stderr, flush=True)
        raise RuntimeError("Engine core initialization failed. See root cause above.")


class Registry:
    def stat(self):
        return {"0": {"preprocessor_total_secs": 0.5}, "1": {"preprocessor_total_secs": 0.25}}


def config_of(args: dict):
    return Thing(
        model_config=Thing(model=args["model"], max_model_len=args["max_model_len"],
                           dtype="torch.bfloat16", runner_type="generate", enforce_eager=True,
                           get_vocab_size=lambda: 1000),
        cache_config=Thing(num_gpu_blocks=10, block_size=16, enable_prefix_caching=True),
        compilation_config=Thing(compilation_time=1.5, encoder_compilation_time=0.0),
        profiler_config=Thing(profiler="torch", torch_profiler_dir="/traces"),
        observability_config=Thing(
            enable_mm_processor_stats=args["enable_mm_processor_stats"]))


class Engine:
    def __init__(self, args):
        self.vllm_config, self.renderer = config_of(args), Thing(_mm_timing_registry=Registry())
        self.engine_core = Thing(shutdown=lambda: note("core.shutdown"))

    def collective_rpc(self, method):
        note("collective_rpc", method=method)
        return [{"0-3f": {"encoder_forward_secs": 0.25, "num_encoder_calls": 2}},
                {"0-3f": {"encoder_forward_secs": 0.75, "num_encoder_calls": 1},
                 "x-9": {"encoder_forward_secs": 0.125, "num_encoder_calls": 1}}]


class LLM:
    def __init__(self, **args):
        print("an engine prints what it likes", flush=True)
        print("INFO Loading weights took 1.25 seconds", file=sys.stderr, flush=True)
        fail_as(args["model"])
        note("LLM", **args)
        self.llm_engine, self.supported_tasks = Engine(args), ["embed"]

    @classmethod
    def from_engine_args(cls, args):
        note("from_engine_args")
        return cls(**vars(args))

    def get_tokenizer(self):
        return Tokenizer()

    def answers(self, prompts, params, use_tqdm):
        bar = use_tqdm(total=len(prompts), desc="Processed prompts") if use_tqdm else None
        out = []
        for i, (prompt, p) in enumerate(zip(prompts, params)):
            out.append(answer(i, ids_of(prompt), p))
            if bar:
                bar.postfix = f"{1 / bar.format_dict['elapsed']:.2f}"
                bar.update(1)
        if bar:
            bar.refresh()
            bar.close()
        return out

    def generate(self, prompts, params, lora_request=None, priority=None, use_tqdm=True):
        note("generate", prompts=prompts, params=[vars(p) for p in params], priority=priority,
             lora=lora_request and [r and vars(r) for r in lora_request])
        if any(p.max_tokens == 99 for p in params):
            raise ValueError("max_tokens is more than there is")
        return self.answers(prompts, params, use_tqdm)

    def chat(self, messages, params, use_tqdm=True):
        note("chat", messages=messages, params=[vars(p) for p in params])
        return self.answers([{"prompt": "a b c"}] * len(messages), params, use_tqdm)

    def enqueue(self, prompts, params, lora_request=None, priority=None, use_tqdm=True):
        note("enqueue", n=len(prompts), priority=priority)
        for _ in use_tqdm(prompts) if use_tqdm else prompts:
            pass
        self.queued = (prompts, params)

    def wait_for_completion(self, output_type, use_tqdm=True):
        note("wait", is_request_output=output_type is RequestOutput)
        return self.answers(*self.queued, use_tqdm)

    def sleep(self, level, mode):
        note("sleep", level=level, mode=mode)

    def wake_up(self, tags):
        note("wake_up", tags=tags)

    def start_profile(self):
        note("start_profile")

    def stop_profile(self):
        note("stop_profile")

    def beam_search(self, prompts, params):
        note("beam_search", params=vars(params))
        return [Thing(sequences=[Thing(tokens=ids_of(p) + [7] * params.max_tokens)]
                      * params.beam_width) for p in prompts]

    def encode(self, prompts, lora_request=None, use_tqdm=True, pooling_task=None):
        note("encode", task=pooling_task)
        return [PoolingRequestOutput(prompt_token_ids=ids_of(p), outputs=Thing(), finished=True)
                for p in prompts]


class Client:
    """AsyncLLM: an answer comes in steps, each with the one sequence that grew."""

    def __init__(self, args):
        self.vllm_config = config_of(vars(args))

    async def generate(self, prompt, p, lora_request=None, request_id="", priority=0):
        note("async.generate", id=request_id, priority=priority)
        for k in range(p.n):
            for size in (1, p.max_tokens):
                yield RequestOutput(
                    prompt_token_ids=ids_of(prompt), metrics=None,
                    outputs=[Thing(index=k, token_ids=[7] * size)],
                    finished=k == p.n - 1 and size == p.max_tokens)

    async def start_profile(self):
        note("start_profile")

    async def stop_profile(self):
        note("stop_profile")


class Build:
    def __init__(self, args):
        fail_as(args.model)
        self.client = Client(args)

    async def __aenter__(self):
        return self.client

    async def __aexit__(self, *_):
        note("client.shutdown")


build_async_engine_client_from_engine_args = Build


async def merge_async_iterators(*streams):
    left = dict(enumerate(streams))
    while left:
        for i in list(left):
            try:
                yield i, await anext(left[i])
            except StopAsyncIteration:
                del left[i]


current_platform = Thing(get_device_name=lambda: "a fake device", device_type="cpu")
if IS_OLD:
    for name in ("enqueue", "wait_for_completion", "from_engine_args"):
        delattr(LLM, name)
HERE = sys.modules[__name__]
for name in ("engine.arg_utils", "outputs", "sampling_params", "lora.request", "lora.utils",
             "platforms", "envs"):
    sys.modules[f"vllm.{name}"] = HERE
for name in (("utils", "transformers_utils.tokenizer", "entrypoints.openai.api_server") if IS_OLD else
             ("utils.argparse_utils", "utils.async_utils", "tokenizers",
              "entrypoints.launchers.api_server.entry")):
    sys.modules[f"vllm.{name}"] = HERE
