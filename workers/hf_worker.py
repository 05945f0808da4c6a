# SPDX-License-Identifier: Apache-2.0
"""Drives Hugging Face transformers for ProfLLM.

Prompts are batched greedily as `vllm bench throughput --backend hf` does it, with tokenizing,
padding and decoding inside the clock; what was really generated is counted after it.
"""

import argparse
import sys
import time

from profllm_worker import Batch, Refused, serve

now_ns = time.monotonic_ns
BATCH_TOKENS_MAX = 2048


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused("flag", message)


class Transformers:
    engine = "hf"

    def __init__(self, channel) -> None:
        import torch
        import transformers

        self.version = transformers.__version__
        self.torch, self.transformers = torch, transformers
        self.channel, self.batch = channel, Batch()
        self.llm = self.tokenizer = self.args = None
        self.device = "cpu"

    def features(self) -> list:
        return ["render", "beam"]

    def parse(self, words: list):
        p = Parser(prog="hf", add_help=False, allow_abbrev=False)
        p.add_argument("--model", required=True)
        p.add_argument("--tokenizer")
        p.add_argument("--dtype", default="auto")
        p.add_argument("--trust-remote-code", action="store_true")
        p.add_argument("--revision")
        p.add_argument("--tokenizer-revision")
        p.add_argument("--seed", type=int)
        p.add_argument("--max-model-len", type=int)
        p.add_argument("--tokenizer-mode")
        words = [w.partition("=")[0].replace("_", "-") + "".join(w.partition("=")[1:])
                 if w.startswith("--") else w for w in words]
        args, others = p.parse_known_args(words)
        unused = [w for w in others if w.startswith("-") and "prefix-caching" not in w]
        if unused:
            self.channel.line(f"transformers has no use for {', '.join(unused)}")
        return args

    def read_tokenizer(self, args) -> None:
        if self.tokenizer is None:
            self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(
                args.tokenizer or args.model,
                trust_remote_code=args.trust_remote_code,
                revision=args.tokenizer_revision or args.revision,
            )

    def load(self, q: dict) -> dict:
        torch, args = self.torch, self.parse(q["args"])
        dtype = {"half": "float16", "float": "float32"}.get(args.dtype, args.dtype)
        if dtype != "auto":
            dtype = getattr(torch, dtype, None)
            if not isinstance(dtype, torch.dtype):
                raise Refused("flag", f"--dtype {args.dtype}: PyTorch has no such type")
        for name in ("cuda", "xpu", "mps"):
            part = getattr(torch, name, None)
            if part is not None and part.is_available():
                self.device = name
                break
        self.args = args
        self.read_tokenizer(args)
        release = tuple(int(x) for x in self.version.split(".")[:2])
        kind = {"dtype" if release >= (4, 56) else "torch_dtype": dtype}
        if args.seed is not None:
            torch.manual_seed(args.seed)
        began = now_ns()
        llm = self.transformers.AutoModelForCausalLM.from_pretrained(
            args.model, trust_remote_code=args.trust_remote_code, revision=args.revision, **kind)
        if llm.config.model_type == "llama":
            self.tokenizer.pad_token = self.tokenizer.eos_token
        llm = llm.to(self.device)
        self.llm = torch.compile(llm) if q.get("compile") else llm
        return {"began_ns": began, "ended_ns": now_ns()}

    def loaded(self) -> None:
        if self.llm is None:
            raise Refused("other", "no model is loaded")

    def describe(self, _: dict) -> dict:
        self.loaded()
        config = self.llm.config
        length = getattr(config, "max_position_embeddings", None) or 0
        name = self.torch.cuda.get_device_name() if self.device == "cuda" else self.device
        return {
            "engine": self.engine,
            "version": self.version,
            "max_model_len": int(self.args.max_model_len or length),
            "is_pooling": False,
            "device": name,
            "profile_to": "",
            "profile_dir": "",
            "model": self.args.model,
            "dtype": str(self.llm.dtype).replace("torch.", ""),
            "vocab_size": int(getattr(config, "vocab_size", 0) or 0),
        }

    def render(self, q: dict) -> dict:
        self.read_tokenizer(self.args or self.parse(q["args"]))
        more = {"tools": q["tools"]} if q.get("tools") else {}
        return {"text": self.tokenizer.apply_chat_template(
            q["messages"], add_generation_prompt=True, tokenize=False, **more)}

    def put(self, q: dict) -> dict:
        for r in q["requests"]:
            if r.get("media") or r.get("lora"):
                raise Refused("unsupported", "transformers takes prompts of text or token ids only")
            if not r.get("output_len"):
                raise Refused("unsupported", "requests without an output length")
            if not r.get("prompt_len"):
                r["prompt_len"] = len(r["prompt"])
        return self.batch.put(q)

    def groups(self, batch_max: int) -> list:
        """(first, past the last, longest output): as many as fit, in order."""
        requests, out, first, prompt, output = self.batch.requests, [], 0, 0, 0
        for i, r in enumerate(requests):
            prompt = max(prompt, r["prompt_len"])
            output = max(output, r["output_len"])
            if i + 1 < len(requests) and i + 1 - first < batch_max:
                after = requests[i + 1]
                if max(prompt, after["prompt_len"]) + max(
                        output, after["output_len"]) <= BATCH_TOKENS_MAX:
                    continue
            out.append((first, i + 1, output))
            first, prompt, output = i + 1, 0, 0
        return out

    def generate(self, q: dict) -> dict:
        return self.run(q, {"do_sample": True, "num_return_sequences": q.get("n", 1),
                            "temperature": q.get("temperature", 1.0), "top_p": q.get("top_p", 1.0)})

    def beam(self, q: dict) -> dict:
        n = q.get("n", 1)
        return self.run(q, {"do_sample": False, "num_beams": n, "num_return_sequences": n})

    def inputs(self, first: int, last: int):
        """Token ids of a batch, padded; prompts that are ids are all of one length."""
        prompts = [r["prompt"] for r in self.batch.requests[first:last]]
        if isinstance(prompts[0], str):
            return self.tokenizer(prompts, return_tensors="pt", padding=True)
        return {"input_ids": self.torch.tensor(prompts)}

    def run(self, q: dict, how: dict) -> dict:
        self.loaded()
        if q.get("profile") or q.get("prequeue"):
            raise Refused("unsupported", "transformers neither profiles nor queues ahead")
        requests, tokenizer, device = self.batch.requests, self.tokenizer, self.device
        if len({isinstance(r["prompt"], str) for r in requests}) > 1 or len(
                {len(r["prompt"]) for r in requests if not isinstance(r["prompt"], str)}) > 1:
            raise Refused("unsupported", "prompts of token ids of different lengths in one batch")
        batch_max = q.get("batch_max") or len(requests)
        is_shown, is_decoded, is_full = (q.get("is_progress"), q.get("detokenize", True),
                                         q.get("ignore_eos", False))
        kept = []
        began = now_ns()
        for first, last, output in self.groups(batch_max):
            encoded = self.inputs(first, last)
            input_ids = encoded["input_ids"]
            answers = self.llm.generate(
                input_ids=input_ids.to(device), use_cache=True, max_new_tokens=output,
                **({"min_new_tokens": output} if is_full else {}), **how)
            if is_decoded:
                tokenizer.batch_decode(answers, skip_special_tokens=True)
            kept.append((encoded, answers))
            if is_shown:
                self.channel.progress(last, len(requests))
        ended = now_ns()
        prompt_tokens, output_tokens = self.count(kept, q.get("n", 1))
        return {"began_ns": began, "ended_ns": ended, "prompt_tokens": prompt_tokens,
                "output_tokens": output_tokens, "finished": [1] * len(requests)}

    def ends(self) -> set:
        """Ids after which a sequence is over."""
        ids = getattr(self.llm.generation_config, "eos_token_id", None)
        return set(ids if isinstance(ids, (list, tuple)) else [] if ids is None else [ids])

    def count(self, kept: list, n: int) -> tuple:
        """What is not padding: a prompt's mask, and an answer up to its first end."""
        prompts, outputs, ends = [], [], self.ends()
        for encoded, answers in kept:
            width = encoded["input_ids"].shape[1]
            mask = encoded.get("attention_mask")
            rows = answers[:, width:].tolist()
            lengths = [next((i + 1 for i, x in enumerate(row) if x in ends), len(row))
                       for row in rows]
            for i in range(encoded["input_ids"].shape[0]):
                prompts.append(int(mask[i].sum()) if mask is not None else width)
                outputs.append(sum(lengths[i * n : (i + 1) * n]))
        return prompts, outputs

    def close(self) -> None:
        self.llm = None


if __name__ == "__main__":
    sys.exit(serve(Transformers))
