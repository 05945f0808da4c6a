# SPDX-License-Identifier: Apache-2.0
"""Ours against a real vLLM engine on the CPU: what is reported is what its /metrics gained.

usage: engine.py --ours BINARY --model DIR --scripts DIR --data DIR --out DIR --differences FILE
                 [CASE...]
"""

import importlib.util
import os
import sys

from online import arguments
from peer import HERE, Verdicts, fresh_folder, read, read_json, run_jobs, run_ours

spec = importlib.util.spec_from_file_location("serve_engine",
                                              os.path.join(HERE, "..", "serve", "engine.py"))
serve_engine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve_engine)
serve_engine.START_S = 1800  # a machine that does other work imports the package for minutes

ENGINE_ARGS = ["--max-model-len", "4096", "--scheduling-policy", "priority",
               "--enable-prompt-tokens-details"]
SAVED = ["--save-result", "--result-dir", ".", "--result-filename", "result.json"]
TALK = ["bench", "multi-turn", "-m", "{model}", "-u", "{url}", "-i"]
KEEP = ["bench", "structured-output", "--model", "{model}", "--base-url", "{url}", "--num-prompts", "6",
        "--output-len", "48", "--save-results", "--result-filename", "result.json", "--dataset"]
RANKED = ["bench", "prioritization", "--model", "{model}", "--base-url", "{url}", *SAVED]

CASES = [
    ("multi-turn", [*TALK, "{data}/conversations.json", "-p", "2", "-k", "4", "--stats-json-output",
                    "stats.json", *SAVED]),
    ("multi-turn-no-stream", [*TALK, "{data}/short.json", "--no-stream", "--stats-json-output",
                              "stats.json", *SAVED]),
    ("multi-turn-generated", [*TALK, "{data}/readme.json", "--stats-json-output", "stats.json", *SAVED]),
    ("structured-json", [*KEEP, "json"]),
    ("structured-choice", [*KEEP, "choice"]),
    ("structured-regex", [*KEEP, "regex"]),
    ("structured-grammar", [*KEEP, "grammar"]),
    ("structured-half", [*KEEP, "choice", "--structured-output-ratio", "0.5"]),
    ("prioritization", [*RANKED, "--input-len", "24", "--output-len", "8", "--num-prompts", "16"]),
    ("prioritization-dataset", [*RANKED, "--dataset", "{data}/sharegpt.json", "--num-prompts", "8",
                                "--output-len", "6"]),
]


def compare(name: str, words: list[str], engine, o) -> Verdicts:
    v = Verdicts()
    folder = fresh_folder(os.path.join(o.out, name))
    with open(os.path.join(o.data, "novel.txt"), "rb") as f:
        text = f.read()
    with open(os.path.join(folder, "novel.txt"), "wb") as f:
        f.write(text)
    fill = {"model": o.model, "data": o.data, "url": f"http://127.0.0.1:{engine.port}"}
    out, err = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    engine.asked = serve_engine.helper_posts(engine)
    before, posts = engine.counters(), engine.posts()
    status = run_ours(o, [w.format(**fill) for w in words] + ["--progress", "none"], folder, out, err)
    if not v.check(status == 0, f"exit status {status}: {read(err)[-400:]}"):
        return v
    result = read_json(os.path.join(folder, "result.json"))
    said = {"prompt": result["total_input_tokens"], "generated": result["total_output_tokens"],
            "requests": result["completed"]}
    gained = serve_engine.gained(engine, before, said["requests"])
    engine.asked = serve_engine.helper_posts(engine)
    for key, n in gained.items():
        v.check(said[key] == n, f"{key}: ours {said[key]}, the engine {n}")
        v.count(key, n)
    v.check(engine.posts() - posts == said["requests"],
            f"access log: {engine.posts() - posts} requests, ours {said['requests']}")
    check_details(v, folder, said, result)
    return v


def check_details(v: Verdicts, folder: str, said: dict, result: dict) -> None:
    """The tables of turns say the same in sum; choices and the grammar were kept to."""
    stats = read_json(os.path.join(folder, "stats.json"))
    if stats:
        for key, column in (("prompt", "server_prompt_tokens"), ("generated", "server_output_tokens")):
            v.check(sum(r[column] for r in stats) == said[key], f"turns: {column}: not {said[key]}")
        v.count("turns", len(stats))
    for x in result.get("outputs", []):
        # A tiny model writes until it is cut; what is whole must be right.
        if x.get("constrained"):
            v.check(x["correctness"] or x.get("why") == "truncated", f"answer: {x}")
            v.count("constrained answers", 1)


def main() -> int:
    o = arguments()
    os.makedirs(o.out, exist_ok=True)
    engine = serve_engine.Engine(o.model, ENGINE_ARGS, o.out)
    try:
        jobs = [(name, lambda n=name, w=words: compare(n, w, engine, o)) for name, words in CASES]
        return run_jobs(jobs, o.case, o.differences)
    finally:
        engine.stop()


if __name__ == "__main__":
    sys.exit(main())
