# SPDX-License-Identifier: Apache-2.0
"""Upstream's scripts that drive an engine in their process, the converter and the hash benchmarks,
next to ours: the same engine, asked the same in the same order; the same lines, keys and files.

usage: offline.py --ours BINARY --model DIR --scripts DIR --data DIR --out DIR --differences FILE
                  [CASE...]

The engine is a stub (stub.py) at the same place for both. Ours starts a worker, which is relay.py:
the worker itself (workers/vllm_worker.py) is forked here, where vLLM has been imported.
"""

import json
import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
import time
import traceback

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import stub
from online import arguments
from peer import (HERE, RUN_TIMEOUT_S, Verdicts, fork_script, fresh_folder, outcome, read, read_json,
                  run_jobs, run_ours)

WORKERS = os.path.join(HERE, "..", "..", "..", "workers")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
LOG_LINE = re.compile(r"^(INFO|WARNING|ERROR) \d\d-\d\d |^Namespace\(|^$")


def case(name: str, script: str, *args: str, **more) -> dict:
    return {"name": name, "script": script, "args": ["--model", "{model}", *args], **more}


def prefix(name: str, *args: str, **more) -> dict:
    return case(f"prefix-{name}", "prefix_caching", *args, **more)


def documents(name: str, *args: str, **more) -> dict:
    return case(f"documents-{name}", "long_document_qa_throughput", *args, **more)


def priority(name: str, *args: str, **more) -> dict:
    return case(f"priority-{name}", "prioritization", *args, "--output-json", "result.json", **more)


ROWS = ["--dataset-path", "{data}/sharegpt.json", "--input-length-range"]
SHORT = ["--input-len", "12", "--output-len", "6", "--num-prompts"]
CASES = [
    prefix("random", "--num-prompts", "5", "--repeat-count", "3", "--input-length-range", "20:40"),
    prefix("shared", "--num-prompts", "9", "--repeat-count", "2", "--input-length-range", "20:90",
           "--prefix-len", "16", "--seed", "7"),
    prefix("fixed", "--num-prompts", "4", "--input-length-range", "32:32", "--output-len", "3",
           "--disable-detokenize"),
    prefix("one", "--num-prompts", "1", "--repeat-count", "10", "--input-length-range", "128:256"),
    prefix("dataset", "--num-prompts", "12", "--repeat-count", "2", *ROWS, "10:60"),
    prefix("dataset-seed", "--num-prompts", "20", "--repeat-count", "3", *ROWS, "5:40", "--seed", "3",
           "--output-len", "5"),
    prefix("dataset-few", "--num-prompts", "1000", *ROWS, "0:30"),
    prefix("sort", "--num-prompts", "5", "--sort", "--input-length-range", "20:40",
           exit=(1, 0), only="`--sort`"),
    documents("default", "--num-documents", "3", "--document-length", "50"),
    documents("tile", "--num-documents", "4", "--document-length", "30", "--repeat-mode", "tile",
              "--repeat-count", "3"),
    documents("interleave", "--num-documents", "4", "--document-length", "30", "--repeat-mode",
              "interleave", "--output-len", "5"),
    documents("seed", "--num-documents", "6", "--document-length", "20", "--shuffle-seed", "3",
              "--repeat-count", "5"),
    documents("engine", "--num-documents", "2", "--document-length", "9", "--enable-prefix-caching",
              "--max-model-len", "4096", "--seed", "4"),
    priority("plain", *SHORT, "20"),
    priority("seed", *SHORT, "50", "--seed", "5"),
    priority("n", *SHORT, "10", "--n", "2", "--disable-detokenize"),
    priority("dataset", "--dataset", "{data}/sharegpt.json", "--num-prompts", "25"),
    priority("dataset-length", "--dataset", "{data}/sharegpt.json", "--num-prompts", "30",
             "--output-len", "9", "--seed", "11"),
    priority("dataset-few", "--dataset", "{data}/sharegpt.json", "--num-prompts", "5000"),
]
CONVERTED = [
    ("plain", "foreign", ["--any-language"], []),
    ("some", "foreign", ["--any-language"], ["--max-items", "20"]),
    ("some-seed", "foreign", ["--any-language"], ["--max-items", "50", "--seed", "4"]),
    ("turns", "foreign", ["--any-language"], ["--min-turns", "3", "--max-turns", "4"]),
    ("lengths", "foreign", ["--any-language"], ["--min-content-len", "12", "--max-content-len", "120"]),
    ("all", "foreign", ["--any-language"], ["--min-turns", "2", "--max-turns", "5", "--max-items", "7",
                                          "--seed", "9", "--max-content-len", "150"]),
]


class Forge:
    """Forks workers of ours for relay.py."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "forge.sock")
        if os.path.exists(self.path):
            os.remove(self.path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(0.05)

    def command(self) -> str:
        return shlex.join([sys.executable, "-S", "-E", os.path.join(HERE, "relay.py"), self.path])

    def serve(self, process: subprocess.Popen, script: str, prepare) -> int:
        """Until our command has ended."""
        deadline, workers = time.monotonic() + RUN_TIMEOUT_S, {}
        while process.poll() is None and time.monotonic() < deadline:
            try:
                conn, _ = self.listener.accept()
                conn.setblocking(True)
                _, fds, _, _ = socket.recv_fds(conn, 1, 3)
                workers[self.fork(fds, script, prepare)] = conn
                for fd in fds:
                    os.close(fd)
            except TimeoutError:
                pass
            self.reap(workers)
        if process.poll() is None:
            process.kill()
        for pid in workers:
            os.waitpid(pid, 0)
        return process.wait()

    @staticmethod
    def reap(workers: dict) -> None:
        for pid, conn in list(workers.items()):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got:
                conn.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
                conn.close()
                del workers[pid]

    def fork(self, fds: list[int], script: str, prepare) -> int:
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            self.listener.close()
            worker, out, err = fds
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.environ["PROFLLM_WORKER_FD"] = str(worker)
            sys.argv = [os.path.join(WORKERS, script)]
            sys.path.insert(0, WORKERS)
            prepare()
            runpy.run_path(sys.argv[0], run_name="__main__")
            status = 0
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)


class Runner:
    def __init__(self, o) -> None:
        import vllm.tokenizers
        from transformers import AutoTokenizer
        from vllm import LLM, SamplingParams  # noqa: F401  (part of the warm-up)
        from vllm.engine.arg_utils import EngineArgs  # noqa: F401

        self.o, self.fill = o, {"model": o.model, "data": o.data}
        os.makedirs(o.out, exist_ok=True)
        self.forge = Forge(o.out)
        tokenizer = vllm.tokenizers.get_tokenizer(o.model)
        # The order of this map is another one in every process; ours is that of the ids.
        ordered = dict(sorted(tokenizer.get_vocab().items(), key=lambda x: x[1]))
        tokenizer.get_vocab = lambda: ordered
        vllm.tokenizers.get_tokenizer = lambda *_, **__: tokenizer
        plain = AutoTokenizer.from_pretrained(o.model)
        AutoTokenizer.from_pretrained = staticmethod(lambda *_, **__: plain)

    def run(self, who: str, name: str, script: str, verb: list[str], args: list[str], prepare,
            worker: str = "vllm_worker.py") -> dict:
        folder = fresh_folder(os.path.join(self.o.out, name, who))
        calls = os.path.join(folder, "calls.jsonl")
        out, err = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
        args = [a.format(**self.fill) for a in args]
        if who == "upstream":
            status = fork_script(os.path.join(self.o.scripts, script), args, folder, out, err,
                                 lambda: prepare(calls))
        else:
            with open(out, "wb") as a, open(err, "wb") as b:
                process = subprocess.Popen(
                    [self.o.ours, *verb, *args, "--worker-cmd", self.forge.command()], cwd=folder,
                    stdout=a, stderr=b, stdin=subprocess.DEVNULL)
                status = self.forge.serve(process, worker, lambda: prepare(calls))
        return {**outcome(folder, status, []),
                "calls": [json.loads(x) for x in read(calls).splitlines()],
                "result": read_json(os.path.join(folder, "result.json"))}


def masked(text: str) -> list[str]:
    """Lines with figures by the number of their decimals."""
    def shape(m):
        decimals = len(m[1] or "") - 1
        return "N" if decimals < 0 else f"N.{decimals}" if decimals <= 4 and not m[2] else "N.n"

    lines = [x.strip() for x in text.splitlines()]
    return [re.sub(r"\s+", " ", NUMBER.sub(shape, x)) for x in lines if not LOG_LINE.match(x)]


def compare_lines(v: Verdicts, theirs: str, ours: str) -> None:
    """Each of upstream's lines in ours, in its order."""
    rest = iter(masked(ours))
    for line in masked(theirs):
        v.check(any(x == line for x in rest), f"lines: ours lacks {line!r} or has it elsewhere")
        v.count("lines", 1)


def compare_engine(v: Verdicts, theirs: dict, ours: dict) -> None:
    for key, value in theirs["fields"].items():
        got = ours["fields"].get(key)
        # A script that sets the tokenizer to the model says what the engine does by itself.
        is_default = key == "tokenizer" and got == "None" and value == theirs["fields"]["model"]
        v.check(value == got or is_default, f"engine argument {key}: upstream {value}, ours {got}")
        v.count("engine arguments", 1)


def compare_generate(v: Verdicts, theirs: dict, ours: dict) -> None:
    for key in ("prompts", "params"):
        if v.equal(f"generate: number of {key}", len(theirs[key]), len(ours[key])):
            for i, (a, b) in enumerate(zip(theirs[key], ours[key])):
                if key == "params" and "watermarking=None" in a and "watermarking=False" in b:
                    v.intend("`watermarking` of the sampling parameters")
                    b = b.replace("watermarking=False", "watermarking=None")
                if not v.equal(f"generate: {key} {i}", a, b):
                    break
            v.count(key, len(theirs[key]))
    v.equal("generate: priority", theirs["priority"], ours["priority"])


def compare_calls(v: Verdicts, theirs: list[dict], ours: list[dict]) -> None:
    if not v.equal("calls", [c["call"] for c in theirs], [c["call"] for c in ours]):
        return
    v.check(theirs, "upstream asked nothing")
    for a, b in zip(theirs, ours):
        (compare_engine if a["call"] == "engine" else compare_generate)(v, a, b)


def compare(c: dict, r: Runner) -> Verdicts:
    v = Verdicts()
    script = f"benchmark_{c['script']}.py"
    theirs, ours = (r.run(who, c["name"], script, [script], c["args"], stub.install)
                    for who in ("upstream", "ours"))
    v.equal("exit statuses", c.get("exit", (0, 0)), (theirs["status"], ours["status"]))
    if "only" in c:
        v.intend(c["only"])
        return v
    if theirs["status"] or ours["status"]:
        v.check(False, f"upstream: {theirs['stderr'][-300:]}; ours: {ours['stderr'][-300:]}")
    compare_calls(v, theirs["calls"], ours["calls"])
    compare_lines(v, theirs["stdout"], ours["stdout"])
    if theirs["result"]:
        keys = [k for k in ours["result"] or {} if k in theirs["result"]]
        v.equal("result: keys in their order", list(theirs["result"]), keys)
        for key in ("num_requests", "total_num_tokens"):
            v.equal(f"result: {key}", theirs["result"][key], (ours["result"] or {}).get(key))
        v.count("keys of results", len(keys))
    return v


def compare_converted(name: str, data: str, own: list[str], args: list[str], r: Runner) -> Verdicts:
    v = Verdicts()
    path, texts = os.path.join(r.o.data, data + ".json"), []
    for who in ("upstream", "ours"):
        folder = fresh_folder(os.path.join(r.o.out, f"convert-{name}", who))
        out, err = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
        if who == "upstream":
            script = os.path.join(r.o.scripts, "multi_turn", "convert_sharegpt_to_openai.py")
            status = fork_script(script, [path, "out.json", *args], folder, out, err)
        else:
            status = run_ours(r.o, ["dataset", "convert-sharegpt", path, "out.json", *args, *own], folder,
                              out, err)
        v.check(status == 0, f"{who}: status {status}: {read(err)[-300:]}")
        texts.append(read(os.path.join(folder, "out.json")))
    if v.equal("converted", *(x.rstrip("\n") for x in texts)) and texts[0]:
        v.count("conversations", len(json.loads(texts[0])))
    v.intend("`convert_sharegpt_to_openai.py`: language filter")
    return v


def compare_hashes(name: str, args: list[str], r: Runner) -> Verdicts:
    """What is hashed, and the lines."""
    v = Verdicts()
    theirs, ours = (r.run(who, name, f"benchmark_{name.replace('-', '_')}.py", ["bench", name], args,
                          stub.note_hashes, "hash_worker.py") for who in ("upstream", "ours"))
    v.equal("exit status", theirs["status"], ours["status"])
    a, b = theirs["calls"], ours["calls"]
    v.check(a, f"upstream hashed nothing: {theirs['stderr'][-300:]}")
    if v.equal("number of hashed values", len(a), len(b)):
        for x, y in zip(a, b):
            if not v.equal("hashed", x, y):
                break
        v.count("hashed values", len(a))
    # The columns of names are as wide as the longest one.
    compare_lines(v, theirs["stdout"], ours["stdout"])
    return v


def main() -> int:
    o = arguments()
    r = Runner(o)
    jobs = [(c["name"], lambda c=c: compare(c, r)) for c in CASES]
    jobs += [(f"convert-{c[0]}", lambda c=c: compare_converted(*c, r)) for c in CONVERTED]
    jobs += [("hash", lambda: compare_hashes("hash", ["--iterations", "300"], r)),
             ("prefix-block-hash", lambda: compare_hashes("prefix-block-hash", [
                 "--num-blocks", "30", "--block-size", "8", "--trials", "2", "--seed", "3"], r))]
    return run_jobs(jobs, o.case, o.differences)


if __name__ == "__main__":
    sys.exit(main())
