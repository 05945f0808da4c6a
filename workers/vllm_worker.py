# SPDX-License-Identifier: Apache-2.0
"""Drives vLLM for ProfLLM through the engine's own Python interface.

The two clock reads of every call are where `vllm bench` has them; prompts and sampling parameters
are made before. Made for vLLM 0.11 and later: what a release does not have is reported as not
supported.
"""

import asyncio
import contextlib
import dataclasses
import gc
import inspect
import re
import sys
import time

from profllm_worker import Bar, Batch, Log, Refused, serve

now_ns = time.monotonic_ns
PHASES = (
    ("load weights", r"Loading weights took ([\d.]+) sec"),
    ("load model", r"Model loading took .*? and ([\d.]+) sec"),
    ("trace the model", r"Dynamo bytecode transform time: ([\d.]+) s"),
    ("compile", r"torch\.compile (?:takes|took) ([\d.]+) s in total"),
    ("first run", r"Initial profiling/warmup run took ([\d.]+) s"),
    ("capture graphs", r"\]? Graph capturing finished in ([\d.]+) sec"),
    ("profile, KV cache, warm-up", r"init engine \(.*?\) took ([\d.]+) s"),
)
POOLING_TASKS = ("embed", "classify", "score", "reward", "token_embed", "token_classify", "encode")
MEDIA_KINDS = ("image_url", "video_url", "audio_url")


def first_import(*places):
    """The first of (module, name) that this release has; None: none."""
    for module, name in places:
        try:
            return getattr(__import__(module, fromlist=[name]), name)
        except (ImportError, AttributeError):
            continue
    return None


def has_parameter(function, name: str) -> bool:
    return function is not None and name in inspect.signature(function).parameters


def fields_of(kind) -> set:
    return set(getattr(kind, "__annotations__", {})) | set(inspect.signature(kind).parameters)


class Vllm:
    engine = "vllm"

    def __init__(self, channel) -> None:
        import vllm
        from vllm import LLM, SamplingParams
        from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs

        self.version = vllm.__version__
        self.LLM, self.SamplingParams = LLM, SamplingParams
        self.EngineArgs, self.AsyncEngineArgs = EngineArgs, AsyncEngineArgs
        self.channel, self.batch = channel, Batch()
        self.llm = self.client = self.loop = self.tokenizer = self.args = None
        self.stack = contextlib.AsyncExitStack()
        self.is_frozen = False

    def features(self) -> list:
        can = ["chat", "async", "profile", "lora", "render", "sampling"]
        if has_parameter(self.LLM.generate, "priority"):
            can.append("priority")
        can += [x for x, method in (("beam", "beam_search"), ("encode", "encode"))
                if hasattr(self.LLM, method)]
        if hasattr(self.LLM, "enqueue") and hasattr(self.LLM, "wait_for_completion"):
            can.append("prequeue")
        if "enable_mm_processor_stats" in fields_of(self.EngineArgs):
            can.append("mm_stats")
        return can

    # Arguments and the engine

    def parse(self, args: list, is_async: bool = False):
        parser_class = first_import(
            ("vllm.utils.argparse_utils", "FlexibleArgumentParser"),
            ("vllm.utils", "FlexibleArgumentParser"),
        )

        class Parser(parser_class):
            def error(self, message):
                raise Refused("flag", message)

        parser = self.AsyncEngineArgs.add_cli_args(Parser(prog="vllm"))
        kind = self.AsyncEngineArgs if is_async else self.EngineArgs
        return kind.from_cli_args(parser.parse_args(args))

    def load(self, q: dict) -> dict:
        if self.llm or self.client:
            raise Refused("other", "an engine is loaded already")
        is_async = bool(q.get("async"))
        self.args = self.parse(q["args"], is_async)
        if q.get("mm_stats") and "enable_mm_processor_stats" in fields_of(self.EngineArgs):
            self.args.enable_mm_processor_stats = True  # as upstream sets it
        log = Log()
        if is_async:
            began, ended = self.load_async()
        elif hasattr(self.LLM, "from_engine_args"):
            began = now_ns()
            self.llm = self.LLM.from_engine_args(self.args)
            ended = now_ns()
        else:
            values = dataclasses.asdict(self.args)
            began = now_ns()
            self.llm = self.LLM(**values)
            ended = now_ns()
        told = {"began_ns": began, "ended_ns": ended, "phases": self.phases(log)}
        compilation = getattr(self.config(), "compilation_config", None)
        for key, name in (("compilation_s", "compilation_time"),
                          ("encoder_compilation_s", "encoder_compilation_time")):
            value = getattr(compilation, name, None)
            if value is not None:
                told[key] = float(value)
        return told

    def load_async(self) -> tuple:
        build = first_import(
            ("vllm.entrypoints.launchers.api_server.entry",
             "build_async_engine_client_from_engine_args"),
            ("vllm.entrypoints.openai.api_server", "build_async_engine_client_from_engine_args"),
        )
        if build is None:
            raise Refused("unsupported", f"the asynchronous engine of vLLM {self.version}")
        try:
            import uvloop

            self.loop = uvloop.new_event_loop()
        except ImportError:
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

        async def enter():
            return await self.stack.enter_async_context(build(self.args))

        began = now_ns()
        self.client = self.loop.run_until_complete(enter())
        return began, now_ns()

    def config(self):
        return self.client.vllm_config if self.client else self.llm.llm_engine.vllm_config

    @staticmethod
    def phases(log: Log) -> list:
        text, out = log.text(), []
        for name, pattern in PHASES:
            found = [float(x) for x in re.findall(pattern, text)]
            if found:  # one line a rank: they work at the same time
                out.append({"name": name, "s": max(found)})
        return out

    def loaded(self):
        if not self.llm and not self.client:
            raise Refused("other", "no engine is loaded")
        return self.config()

    def describe(self, _: dict) -> dict:
        c = self.loaded()
        model, cache = c.model_config, c.cache_config
        profiler = getattr(c, "profiler_config", None)
        to = getattr(profiler, "profiler", None) or ""
        folder = ""
        if to == "torch":
            folder = getattr(profiler, "torch_profiler_dir", "") or ""
        elif to == "proton":
            folder = getattr(profiler, "proton_profiler_dir", "") or ""
        elif profiler is None:
            envs = __import__("vllm.envs", fromlist=["envs"])
            folder = getattr(envs, "VLLM_TORCH_PROFILER_DIR", None) or ""
            to = "torch" if folder else ""
        blocks = getattr(cache, "num_gpu_blocks", None)
        return {
            "engine": self.engine,
            "version": self.version,
            "max_model_len": int(model.max_model_len),
            "is_pooling": getattr(model, "runner_type", "generate") == "pooling",
            "device": self.device(),
            "profile_to": to,
            "profile_dir": folder,
            "model": str(model.model),
            "dtype": str(model.dtype).replace("torch.", ""),
            "vocab_size": int(model.get_vocab_size()),
            "kv_tokens": int(blocks * cache.block_size) if blocks else None,
            "has_prefix_caching": bool(getattr(cache, "enable_prefix_caching", False)),
            "is_eager": bool(getattr(model, "enforce_eager", False)),
        }

    @staticmethod
    def device() -> str:
        from vllm.platforms import current_platform

        try:
            return str(current_platform.get_device_name())
        except (NotImplementedError, RuntimeError):
            return str(getattr(current_platform, "device_type", ""))

    # Prompts

    def render(self, q: dict) -> dict:
        if self.tokenizer is None:
            if self.llm:
                self.tokenizer = self.llm.get_tokenizer()
            else:
                self.tokenizer = self.read_tokenizer(self.args or self.parse(q["args"]))
        more = {"tools": q["tools"]} if q.get("tools") else {}
        return {"text": self.tokenizer.apply_chat_template(
            q["messages"], add_generation_prompt=True, tokenize=False, **more)}

    @staticmethod
    def read_tokenizer(args):
        get = first_import(
            ("vllm.tokenizers", "get_tokenizer"),
            ("vllm.transformers_utils.tokenizer", "get_tokenizer"),
        )
        return get(
            args.tokenizer or args.model,
            tokenizer_mode=args.tokenizer_mode,
            trust_remote_code=args.trust_remote_code,
            revision=args.tokenizer_revision or args.revision,
        )

    def put(self, q: dict) -> dict:
        return self.batch.put(q)

    def media(self, parts: list) -> dict:
        """Content parts in the form that LLM.generate takes: pictures, sounds, frames."""
        connector_class = first_import(
            ("vllm.multimodal.media", "MediaConnector"),
            ("vllm.multimodal.utils", "MediaConnector"),
        )
        if connector_class is None:
            raise Refused("unsupported", f"media next to prompts with vLLM {self.version}")
        connector, out = connector_class(), {}
        for part in parts:
            kind = part.get("type")
            if kind == "input_audio":
                sound = part["input_audio"]
                url = f"data:audio/{sound.get('format', 'wav')};base64,{sound['data']}"
                kind = "audio_url"
            elif kind in MEDIA_KINDS:
                url = part[kind]["url"]
            else:
                raise Refused("unsupported", f"a content part of type {kind}")
            name = kind.partition("_")[0]
            out.setdefault(name, []).append(getattr(connector, f"fetch_{name}")(url))
        return out

    def prompts(self) -> list:
        out = []
        for r in self.batch.requests:
            prompt = r["prompt"]
            item = {"prompt_token_ids": prompt} if isinstance(prompt, list) else {"prompt": prompt}
            if r.get("media"):
                item["multi_modal_data"] = self.media(r["media"])
            out.append(item)
        return out

    def conversations(self) -> list:
        out = []
        for r in self.batch.requests:
            if r.get("messages"):
                out.append(r["messages"])
                continue
            if not isinstance(r["prompt"], str):
                raise Refused("unsupported", "chat with prompts that are token ids")
            content = [{"type": "text", "text": r["prompt"]}, *(r.get("media") or [])]
            out.append([{"role": "user", "content": content}])
        return out

    def sampling(self, q: dict) -> list:
        fixed = {
            "n": q.get("n", 1),
            "temperature": q.get("temperature", 1.0),
            "top_p": q.get("top_p", 1.0),
            "ignore_eos": q.get("ignore_eos", True),
            "detokenize": q.get("detokenize", True),
        }
        if not fixed["ignore_eos"] and "watermarking" in fields_of(self.SamplingParams):
            fixed["watermarking"] = False
        return [self.SamplingParams(max_tokens=r.get("output_len"), **{**fixed, **self.own(r)})
                for r in self.batch.requests]

    def own(self, request: dict) -> dict:
        """The request's sampling parameters, in place of the run's."""
        own = dict(request.get("sampling") or {})
        unknown = sorted(set(own) - fields_of(self.SamplingParams))
        if unknown:
            raise Refused("unsupported", f"{', '.join(unknown)} with vLLM {self.version}")
        if own.get("structured_outputs"):
            from vllm.sampling_params import StructuredOutputsParams

            own["structured_outputs"] = StructuredOutputsParams(**own["structured_outputs"])
        return own

    def priorities(self) -> dict:
        """What generate, chat and enqueue take; nothing where no request has one."""
        told = [r.get("priority") for r in self.batch.requests]
        return {"priority": [p or 0 for p in told]} if any(p is not None for p in told) else {}

    def adapters(self):
        if not any(r.get("lora") for r in self.batch.requests):
            return None
        from vllm.lora.request import LoRARequest
        from vllm.lora.utils import get_adapter_absolute_path

        made, out = {}, []
        for r in self.batch.requests:
            lora = r.get("lora")
            if lora and lora["id"] not in made:
                made[lora["id"]] = LoRARequest(
                    lora_name=lora["name"],
                    lora_int_id=lora["id"],
                    lora_path=get_adapter_absolute_path(lora["path"]),
                )
            out.append(made[lora["id"]] if lora else None)
        return out

    # Calls

    def run(self, q: dict, prompts: list, call, enqueue) -> tuple:
        """call(bar) answers all of it; enqueue(bar) only hands it over."""
        from vllm.outputs import RequestOutput

        llm, bar, is_profiled = self.llm, Bar if q.get("is_progress") else False, q.get("profile")
        if q.get("prequeue"):
            if enqueue is None or not hasattr(llm, "wait_for_completion"):
                raise Refused("unsupported", f"queueing ahead with vLLM {self.version}")
            llm.sleep(level=0, mode="abort")
            began = now_ns()
            if is_profiled:
                llm.start_profile()
            try:
                enqueue(bar)
            finally:
                llm.wake_up(tags=["scheduling"])
            outputs = llm.wait_for_completion(output_type=RequestOutput, use_tqdm=bar)
            if is_profiled:
                llm.stop_profile()
            return began, now_ns(), outputs
        began = now_ns()
        if is_profiled:
            llm.start_profile()
        outputs = call(bar)
        if is_profiled:
            llm.stop_profile()
        return began, now_ns(), outputs

    def freeze(self) -> None:
        """The multimodal benchmark takes what is loaded out of the garbage collector's way."""
        observed = getattr(self.config(), "observability_config", None)
        if not self.is_frozen and getattr(observed, "enable_mm_processor_stats", False):
            for generation in range(3):
                gc.collect(generation)
            gc.freeze()
            self.is_frozen = True

    def generate(self, q: dict) -> dict:
        self.loaded()
        prompts, sampling, adapters = self.prompts(), self.sampling(q), self.adapters()
        if self.client:
            return self.generate_async(q, prompts, sampling, adapters)
        llm, more = self.llm, self.priorities()
        enqueue = getattr(llm, "enqueue", None)
        told = self.run(
            q, prompts,
            lambda bar: llm.generate(prompts, sampling, lora_request=adapters, use_tqdm=bar,
                                     **more),
            enqueue and (lambda bar: enqueue(prompts, sampling, lora_request=adapters,
                                             use_tqdm=bar, **more)))
        return counted(*told)

    def chat(self, q: dict) -> dict:
        self.loaded()
        if self.client:
            raise Refused("unsupported", "chat with the asynchronous engine")
        if self.priorities() and not has_parameter(self.llm.chat, "priority"):
            raise Refused("unsupported", f"chat by priority with vLLM {self.version}")
        talks, sampling, llm = self.conversations(), self.sampling(q), self.llm
        enqueue = getattr(llm, "enqueue_chat", None)
        self.freeze()
        more = self.priorities()
        told = self.run(q, talks, lambda bar: llm.chat(talks, sampling, use_tqdm=bar, **more),
                        enqueue and (lambda bar: enqueue(talks, sampling, use_tqdm=bar, **more)))
        return counted(*told)

    def generate_async(self, q: dict, prompts: list, sampling: list, adapters) -> dict:
        merge = first_import(
            ("vllm.utils.async_utils", "merge_async_iterators"),
            ("vllm.utils", "merge_async_iterators"),
        )
        if q.get("prequeue"):
            raise Refused("unsupported", "queueing ahead with the asynchronous engine")
        if q.get("is_progress"):
            self.channel.progress(0, len(prompts))
        client, is_profiled = self.client, q.get("profile")
        adapters = adapters or [None] * len(prompts)
        prefix, last, tell = q.get("id_prefix") or "test", [None] * len(prompts), self.channel
        sequences, done = [{} for _ in prompts], 0
        priorities = self.priorities().get("priority")

        async def drain() -> tuple:
            nonlocal done
            streams = []
            began = now_ns()
            if is_profiled:
                await client.start_profile()
            for i, (prompt, params, lora) in enumerate(zip(prompts, sampling, adapters)):
                more = {"priority": priorities[i]} if priorities else {}
                streams.append(client.generate(
                    prompt, params, lora_request=lora, request_id=f"{prefix}{i}", **more))
            async for i, output in merge(*streams):
                last[i] = output
                for one in output.outputs:  # of n sequences only those that grew
                    sequences[i][one.index] = one
                if output.finished:
                    done += 1
                    tell.progress(done, len(last))
            if is_profiled:
                await client.stop_profile()
            return began, now_ns()

        began, ended = self.loop.run_until_complete(drain())
        told = counted(began, ended, last)
        told["output_tokens"] = [sum(len(s.token_ids) for s in held.values()) for held in sequences]
        return told

    def beam(self, q: dict) -> dict:
        from vllm.sampling_params import BeamSearchParams

        self.loaded()
        if self.client:
            raise Refused("unsupported", "beam search with the asynchronous engine")
        lengths = {r.get("output_len") for r in self.batch.requests}
        if len(lengths) != 1 or None in lengths:
            raise Refused("unsupported", "beam search with requests of different output lengths")
        more = {"watermarking": False} if "watermarking" in fields_of(BeamSearchParams) else {}
        params = BeamSearchParams(beam_width=q.get("n", 1), max_tokens=lengths.pop(),
                                  ignore_eos=q.get("ignore_eos", True), **more)
        prompts = self.prompts()
        q = {**q, "prequeue": False}
        began, ended, outputs = self.run(
            q, prompts, lambda bar: self.llm.beam_search(prompts, params), None)
        # A sequence of a beam has its prompt in front.
        tokenizer, prompt_tokens, output_tokens = self.llm.get_tokenizer(), [], []
        for prompt, output in zip(prompts, outputs):
            n = len(prompt.get("prompt_token_ids") or tokenizer.encode(prompt["prompt"]))
            prompt_tokens.append(n)
            output_tokens.append(sum(max(0, len(s.tokens) - n) for s in output.sequences))
        return {"began_ns": began, "ended_ns": ended, "prompt_tokens": prompt_tokens,
                "output_tokens": output_tokens, "finished": [1] * len(outputs)}

    def encode(self, q: dict) -> dict:
        self.loaded()
        if self.client:
            raise Refused("unsupported", "encoding with the asynchronous engine")
        tasks = getattr(self.llm, "supported_tasks", ())
        task = next((t for t in POOLING_TASKS if t in tasks), None)
        if task is None:
            raise Refused("unsupported", f"{self.config().model_config.model} gives no embeddings, "
                          "classes or scores")
        prompts, adapters, llm = self.prompts(), self.adapters(), self.llm
        q = {**q, "prequeue": False}
        told = self.run(
            q, prompts, lambda bar: llm.encode(prompts, lora_request=adapters, use_tqdm=bar,
                                               pooling_task=task), None)
        return counted(*told)

    def profile_start(self, _: dict) -> dict:
        self.loaded()
        if self.client:
            self.loop.run_until_complete(self.client.start_profile())
        else:
            self.llm.start_profile()
        return {}

    def profile_stop(self, _: dict) -> dict:
        self.loaded()
        if self.client:
            self.loop.run_until_complete(self.client.stop_profile())
        else:
            self.llm.stop_profile()
        return {}

    # Multimodal stages

    def mm_stats(self, _: dict) -> dict:
        self.loaded()
        if self.client:
            raise Refused("unsupported", "multimodal stages of the asynchronous engine")
        engine = self.llm.llm_engine
        observed = getattr(self.config(), "observability_config", None)
        if not getattr(observed, "enable_mm_processor_stats", False):
            return {"requests": {}}
        registry = getattr(getattr(engine, "renderer", None), "_mm_timing_registry", None)
        if registry is None:
            get = first_import(("vllm.benchmarks.mm_processor", "get_timing_stats_from_engine"))
            if get is None:
                raise Refused("unsupported", f"multimodal stages with vLLM {self.version}")
            return {"requests": plain(get(engine))}
        front = plain(registry.stat())
        return {"requests": merged(front, engine.collective_rpc("get_encoder_timing_stats"))}

    def close(self) -> None:
        try:
            if self.client:
                self.loop.run_until_complete(self.stack.aclose())
            elif self.llm:
                core = getattr(self.llm.llm_engine, "engine_core", None)
                if hasattr(core, "shutdown"):
                    core.shutdown()
        except Exception as error:  # pylint: disable=broad-except
            print(f"while ending the engine: {error!r}", file=sys.stderr)
        self.llm = self.client = None


def plain(stats: dict) -> dict:
    return {str(k): {name: x if isinstance(x, int) else float(x) for name, x in v.items()}
            for k, v in stats.items()}


def merged(front: dict, workers: list) -> dict:
    """What ranks say of one request happened at the same time; their ids may have a suffix."""
    encoder = {}
    for told in workers:
        for key, stages in plain(told or {}).items():
            have = encoder.setdefault(key, stages)
            for name in ("encoder_forward_secs", "num_encoder_calls"):
                if name in have or name in stages:
                    have[name] = max(have.get(name, 0), stages.get(name, 0))
    for key, stages in encoder.items():
        short = key.rpartition("-")[0]
        name = key if key in front or short not in front else short
        front.setdefault(name, {}).update(stages)
    return front


def e2el_s(output):
    m = getattr(output, "metrics", None)
    first, at, last = (getattr(m, x, None) for x in (
        "first_token_latency", "first_token_ts", "last_token_ts"))
    if not output.finished or None in (first, at, last):
        return None
    return first + max(0.0, last - at)


def ttft_s(output):
    return getattr(getattr(output, "metrics", None), "first_token_latency", None)


def queue_s(output):
    """How long the engine's scheduler let it wait."""
    m = getattr(output, "metrics", None)
    queued, scheduled = getattr(m, "queued_ts", None), getattr(m, "scheduled_ts", None)
    return max(0.0, scheduled - queued) if queued and scheduled else None


def counted(began: int, ended: int, outputs: list) -> dict:
    told = {
        "began_ns": began,
        "ended_ns": ended,
        "prompt_tokens": [len(o.prompt_token_ids or ()) for o in outputs],
        "output_tokens": [sum(len(s.token_ids or ()) for s in seqs if s is not None)
                          if isinstance(seqs := getattr(o, "outputs", None), list) else 0
                          for o in outputs],
        "finished": [int(o.finished) for o in outputs],
    }
    for key, time_of in (("e2el_s", e2el_s), ("ttft_s", ttft_s), ("queue_s", queue_s)):
        times = [time_of(o) for o in outputs]
        if any(t is not None for t in times):
            told[key] = times
    cached = [getattr(o, "num_cached_tokens", None) for o in outputs]
    if cached and None not in cached:
        told["cached_tokens"] = cached
    return told


if __name__ == "__main__":
    sys.exit(serve(Vllm))
