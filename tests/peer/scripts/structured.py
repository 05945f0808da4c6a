# SPDX-License-Identifier: Apache-2.0
"""benchmark_serving_structured_output.py and `bench structured-output`: the same bodies, files of
the same names with the same keys, and the same statistics of the same figures."""

import glob
import json
import math
import os
import re
import types

import numpy as np
import pandas as pd
from peer import Verdicts, client, compare_requests, read_json

SCRIPT = "benchmark_serving_structured_output.py"
TEST_REQUEST = "a request before the run"
KEYLESS = "`Authorization` without a key"
REQUEST_ID = "`X-Request-Id`"
ORDER = "order of a body's members"
CHAT = "input tokens of `openai-chat`"
GOODPUT = "`request_goodput`"
EXTRA = {"request_goodput", "profllm"}
TIMED = {"duration", "request_throughput", "output_throughput", "total_token_throughput",
         "ttft_description", "tpot_description", "ttfts", "itls"}


def so(name: str, dataset: str, *args: str, **more) -> dict:
    return {"name": f"so-{name}", "args": ["--model", "{model}", "--dataset", dataset, "--num-prompts",
            "8", "--output-len", "120", "--save-results", *args], **more}


ONE = ["--max-concurrency", "1"]
CASES = [
    so("json", "json", *ONE),
    so("json-half", "json", *ONE, "--structured-output-ratio", "0.5"),
    so("json-third", "json", *ONE, "--structured-output-ratio", "0.33", "--seed", "9"),
    so("json-none", "json", *ONE, "--no-structured-output"),
    so("json-none-ratio", "json", *ONE, "--no-structured-output", "--structured-output-ratio", "0.7"),
    so("json-unique", "json-unique", *ONE, is_random=True),
    so("json-schema", "json", *ONE, "--json-schema-path", "{data}/schema.json"),
    so("regex", "regex", *ONE),
    so("regex-half", "regex", *ONE, "--structured-output-ratio", "0.5", "--seed", "1"),
    so("choice", "choice", *ONE),
    so("choice-wrong", "choice", *ONE, sim=["--constraint-errors", "0.5"]),
    so("json-wrong", "json", *ONE, sim=["--constraint-errors", "0.5"]),
    so("regex-wrong", "regex", *ONE, sim=["--constraint-errors", "0.5"]),
    so("prefix", "choice", *ONE, "--random-prefix-len", "12"),
    so("prefix-seed", "json", *ONE, "--random-prefix-len", "40", "--seed", "6"),
    so("grammar", "grammar", *ONE),
    so("grammar-half", "grammar", *ONE, "--structured-output-ratio", "0.5", "--seed", "2"),
    so("ignored", "choice", *ONE, sim=["--ignore-constraints"]),
    so("ignore-eos", "regex", *ONE, "--ignore-eos", "--output-len", "30"),
    so("metrics", "choice", *ONE, "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles",
       "25,50.5,99"),
    so("goodput", "choice", *ONE, "--goodput", "ttft:500", "e2el:9000"),
    so("rate", "regex", "--request-rate", "40", "--burstiness", "0.5", any_order=True),
    so("rate-integer", "json", "--request-rate", "20", "--structured-output-ratio", "0.25", any_order=True),
    so("all-at-once", "json", any_order=True),
    so("concurrency", "grammar", "--max-concurrency", "3", any_order=True),
    so("file-name", "choice", *ONE, "--result-filename", "mine.json", "--result-dir", "."),
    so("chat", "json", *ONE, "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"),
]


def server(url: str) -> list[str]:
    return ["--base-url", url]


def normalized(v: Verdicts, theirs: list[dict], ours: list[dict]) -> tuple[list, list]:
    """Without what differs on purpose: the request before the run, the key None, logprobs null."""
    if theirs:
        v.intend(TEST_REQUEST)
    out = []
    for request in theirs[1:]:
        kept = [(k, x) for k, x in request["fields"] if (k.lower(), x) != ("authorization", "Bearer None")]
        if len(kept) != len(request["fields"]):
            v.intend(KEYLESS)
        out.append({**request, "fields": kept})
    for request in ours:
        v.intend(REQUEST_ID)
        request["body"] = in_order(v, out, request["body"])
        request["fields"] = [(k, x) for k, x in request["fields"] if k.lower() != "x-request-id"]
    return out, ours


def in_order(v: Verdicts, theirs: list[dict], body: str) -> str:
    """Our body with its members in the order of upstream's, where it has the same ones."""
    keys = next((list(json.loads(r["body"])) for r in theirs
                 if set(json.loads(r["body"])) == set(json.loads(body))), None)
    mine = json.loads(body)
    if keys is None or list(mine) == keys:
        return body
    v.intend(ORDER)
    return json.dumps({k: mine[k] for k in keys})


def unique_names(request: dict) -> dict:
    """The random name of json-unique, which is in the prompt and in the schema."""
    return {**request, "body": re.sub(r"__optional_field_[0-9a-f-]{36}", "NAME", request["body"])}


def result_of(folder: str) -> tuple[str, dict]:
    found = [x for x in glob.glob(os.path.join(folder, "*")) if x.endswith((".txt", "mine.json"))]
    return (os.path.basename(found[0]), read_json(found[0])) if found else ("", {})


def close(a, b) -> bool:
    if isinstance(a, float) and isinstance(b, (int, float)):
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-12 * max(1, abs(a))
    return a == b


def recomputed(module, r: dict) -> dict:
    """Upstream's statistics of our figures. A latency is its TTFT and the pauses after it."""
    outputs = [types.SimpleNamespace(
        success=not r["errors"][i], generated_text="", latency=r["ttfts"][i] + sum(r["itls"][i]),
        ttft=r["ttfts"][i], itl=r["itls"][i], prompt_len=r["input_lens"][i])
        for i in range(len(r["ttfts"]))]
    lens = iter([n for n, e in zip(r["output_lens"], r["errors"]) if not e])
    requests = [types.SimpleNamespace(prompt_len=n) for n in r["input_lens"]]

    def tokenizer(_, add_special_tokens):
        return types.SimpleNamespace(input_ids=[0] * next(lens))

    names = {k.rsplit("_", 2)[1] for k in r if k.startswith("mean_")}
    shares = sorted({float(k[1:].split("_")[0]) for k in r if k[0] == "p" and k[1].isdigit()})
    m, _ = module.calculate_metrics(requests, outputs, r["duration"], tokenizer, list(names), shares)
    want = {"completed": m.completed, "total_input_tokens": m.total_input,
            "total_output_tokens": m.total_output, "request_throughput": m.request_throughput,
            "output_throughput": m.output_throughput,
            "total_token_throughput": m.total_token_throughput}
    for name in names:
        want |= {f"{s}_{name}_ms": getattr(m, f"{s}_{name}_ms") for s in ("mean", "median", "std")}
        want |= {f"p{p:g}_{name}_ms": x for p, x in getattr(m, f"percentiles_{name}_ms")}
    want["ttft_description"] = pd.Series([x.ttft for x in outputs]).describe().to_dict()
    want["tpot_description"] = pd.Series([x.tpot for x in outputs]).describe().to_dict()
    return want


def compare_statistics(v: Verdicts, module, r: dict) -> None:
    for key, value in recomputed(module, r).items():
        pairs = value.items() if isinstance(value, dict) else [("", value)]
        for name, want in pairs:
            want = want.item() if isinstance(want, np.generic) else want
            got = r[key][name] if name else r.get(key)
            # E2EL and TPOT come from a latency that is summed up here from its rounded parts.
            is_same = close(want, got) or (isinstance(want, float) and ("tpot" in key or "e2el" in key)
                                           and abs(want - got) <= 1e-6 * max(1, abs(want)))
            v.check(is_same, f"{key} {name}: upstream's code {want!r}, ours {got!r}")
            v.count("statistics", 1)


ANSWERS = {"total_output_tokens", "output_lens", "correct_rate(%)"}


def compare_scores(v: Verdicts, case: dict, module, ours: dict) -> None:
    """Upstream's own scoring of the answers that ours got; the simulator answers each differently."""
    kind = case["args"][case["args"].index("--dataset") + 1]
    args = types.SimpleNamespace(structure_type="json" if kind.startswith("json") else kind,
                                 choice=["Positive", "Negative"], regex=r"\w+@\w+\.com\n")
    ret = [{"generated": x["generated"], "expected": x["expected"]} for x in ours["outputs"]]
    v.equal("correct_rate(%)", module.evaluate(ret, args), ours["correct_rate(%)"])
    for i, (a, b) in enumerate(zip(ret, ours["outputs"])):
        v.equal(f"answer {i}: correctness of {a['generated']!r:.60}", a["correctness"],
                b["correctness_upstream"])
    v.count("answers scored the same", len(ret))


def compare_results(v: Verdicts, case: dict, theirs: dict, ours: dict) -> None:
    v.equal("result: keys", list(theirs), [k for k in ours if k not in EXTRA])
    if "request_goodput" in ours:
        v.intend(GOODPUT)
    for key in theirs:
        if key == "outputs" or key in TIMED or key.endswith("_ms") or key not in ours:
            continue
        if key in ANSWERS or (case.get("is_random") and "input" in key):
            continue
        if "openai-chat" in case["args"] and "input" in key:
            v.intend(CHAT)
            continue
        v.equal(f"result: {key}", theirs[key], ours[key])
        v.count("keys of results", 1)
    keys = [[k for k in (r.get("outputs") or [{}])[0]] for r in (theirs, ours)]
    v.check(set(keys[0]) <= set(keys[1]), f"outputs: keys: upstream {keys[0]}, ours {keys[1]}")


def rate_line(text: str) -> str:
    return next((x.rstrip() for x in text.splitlines() if x.startswith("correct_rate(%)")), "")


def compare(case: dict, o, module) -> Verdicts:
    v = Verdicts()
    out = os.path.join(o.out, "structured")
    verb = ["bench", "structured-output"]
    theirs = client("upstream", o, case, SCRIPT, verb, server, out)
    ours = client("ours", o, case, SCRIPT, verb, server, out)
    v.equal("exit status", theirs["status"], ours["status"])
    v.check("Traceback" not in theirs["stderr"], f"upstream: {theirs['stderr'][-300:]}")
    a, b = normalized(v, theirs["load"], ours["load"])
    if case.get("is_random"):
        v.intend("`json-unique`")
        a, b = ([unique_names(x) for x in r] for r in (a, b))
    compare_requests(v, a, b, not case.get("any_order"))
    (name, theirs_r), (mine, ours_r) = result_of(theirs["folder"]), result_of(ours["folder"])
    v.equal("result: file name", name, mine)
    if not v.check(theirs_r and ours_r, "result: missing"):
        return v
    compare_results(v, case, theirs_r, ours_r)
    compare_scores(v, case, module, ours_r)
    for who, run, r in (("upstream", theirs, theirs_r), ("ours", ours, ours_r)):
        v.equal(f"line of the rate, {who}", f"correct_rate(%) {r['correct_rate(%)']}",
                rate_line(run["stdout"]))
    compare_statistics(v, module, ours_r)
    return v
