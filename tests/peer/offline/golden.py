#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/latency_golden.h and mm_golden.h: what vLLM's own `bench latency` and
`bench mm-processor` print and save when the engine answers as told here.

    python golden.py ../../unit

Run with the Python that has vLLM (0.32.0 made the files that are there).
"""
import argparse
import contextlib
import io
import json
import os
import random
import sys
import tempfile
import types

import numpy as np
import vllm
from vllm.benchmarks import latency, mm_processor

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Made by tests/peer/offline/golden.py: what vLLM %s's `bench %s` printed and saved. */
#pragma once
#include <stddef.h>

"""


def c_text(text):
    lines = text.split("\n")
    shown = []
    for i, line in enumerate(lines):
        end = "\\n" if i + 1 < len(lines) else ""
        if line or end:
            body = line.replace("\\", "\\\\").replace('"', '\\"') + end
            shown += ['"%s"' % part for part in cut(body)]
    return "\n\t\t".join(shown) or '""'


def cut(body):
    while len(body) > 84:
        at = 84
        while body[at - 1] == "\\":
            at -= 1
        yield body[:at]
        body = body[at:]
    yield body


def c_list(name, values):
    rows, row = [], ""
    for v in values:
        if len(row) + len(repr(v)) > 88:
            rows.append(row)
            row = ""
        row += repr(v) + ", "
    rows.append(row)
    return "static const double %s[] = {\n\t%s\n};\n" % (name, "\n\t".join(r.rstrip() for r in rows))


class Clock:
    """perf_counter() that answers so that the differences are the ones wanted."""

    def __init__(self, spans):
        self.spans, self.now, self.n = list(spans), 0.0, 0

    def perf_counter(self):
        self.n += 1
        if self.n % 2 == 0:
            return self.spans[self.n // 2 - 1]
        return 0.0


def run(main, args):
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        args.output_json = os.path.join(folder, "r.json")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main(args)
        with open(args.output_json) as f:
            saved = f.read()
    return out.getvalue().replace(args.output_json, "r.json"), saved


def fake_llm(**more):
    llm = types.SimpleNamespace(generate=lambda *a, **k: None, **more)
    llm.llm_engine = types.SimpleNamespace(
        model_config=types.SimpleNamespace(max_model_len=10**9))
    return types.SimpleNamespace(from_engine_args=lambda args: llm)


def latency_case(spans):
    vllm.LLM = fake_llm()
    latency.EngineArgs = types.SimpleNamespace(from_cli_args=lambda args: None)
    latency.time = Clock([0.5] + list(spans))
    args = argparse.Namespace(model="a/model", input_len=4, output_len=2, batch_size=2, n=1,
                              use_beam_search=False, num_iters_warmup=1, num_iters=len(spans),
                              profile=False, disable_detokenize=False)
    return run(latency.main, args)


def latency_header(path):
    rng = random.Random(11)
    cases = {
        "one": [0.1],
        "two": [1.5, 2.5],
        "tiny": [1e-5, 2e-5, 3.5e-5],
        "thirty": [0.25 + rng.random() / 50 for _ in range(30)],
        "drifting": [1.0 + i / 100 + rng.random() / 1000 for i in range(24)],
        "many": [rng.lognormvariate(0, 0.5) for _ in range(150)],
    }
    with open(path, "w") as f:
        f.write(HEAD % (vllm.__version__, "latency"))
        for name, spans in cases.items():
            f.write(c_list("latency_" + name, spans))
        f.write("static const struct {\n\tconst double *v;\n\tsize_t n;\n\tconst char *out, *json;\n"
                "} latency_golden[] = {\n")
        for name, spans in cases.items():
            out, saved = latency_case(spans)
            f.write("\t{ latency_%s, %d,\n\t\t%s,\n\t\t%s },\n"
                    % (name, len(spans), c_text(out), c_text(saved)))
        f.write("};\n")
        np.random.seed(7)
        ids = np.random.randint(10000, size=(3, 11)).tolist()
        np.random.seed(2**32 - 1)
        few = np.random.randint(500, size=(2, 9)).tolist()
        f.write("/* numpy.random.seed(7), randint(10000, size=(3, 11)); the last seed, below 500. */\n"
                "static const char *const latency_ids_7[] = {\n\t%s\n};\n"
                "static const char *const latency_ids_few[] = {\n\t%s\n};\n"
                % (",\n\t".join('"%s"' % row for row in ids),
                   ",\n\t".join('"%s"' % row for row in few)))


STAGES = ["get_mm_hashes_secs", "get_cache_missing_items_secs", "apply_hf_processor_secs",
          "merge_mm_kwargs_secs", "apply_prompt_updates_secs", "preprocessor_total_secs",
          "encoder_forward_secs"]


def stages(n, rng):
    all_of = {}
    for i in range(n):
        one = {name: rng.random() / (1 + k) for k, name in enumerate(STAGES)}
        one["num_encoder_calls"] = 1 + i % 2
        if i % 3 == 2:  # what the cache had
            del one["encoder_forward_secs"], one["num_encoder_calls"]
        all_of["%d" % i] = one
    return all_of


def output(e2el, is_finished=True):
    metrics = None if e2el is None else types.SimpleNamespace(
        first_token_latency=e2el, last_token_ts=0.0, first_token_ts=0.0)
    return types.SimpleNamespace(finished=is_finished, metrics=metrics)


def mm_case(told, outputs, elapsed, percentiles):
    by_stage = {}
    for one in told.values():
        for key, value in one.items():
            by_stage.setdefault(key, []).append(value)
    vllm.LLM = fake_llm(chat=lambda *a, **k: outputs, get_tokenizer=lambda: None)
    mm_processor.EngineArgs = types.SimpleNamespace(from_cli_args=lambda args: None)
    one = types.SimpleNamespace(prompt=[], prompt_len=1, expected_output_len=1)
    mm_processor.get_requests = lambda args, tokenizer: [one] * args.num_prompts
    mm_processor.freeze_gc_heap = lambda: None
    mm_processor.collect_mm_processor_stats = lambda engine: by_stage
    mm_processor.time = Clock([elapsed])
    moment = types.SimpleNamespace(isoformat=lambda: "2026-01-02T03:04:05.000006")
    mm_processor.datetime = types.SimpleNamespace(now=lambda: moment)
    args = argparse.Namespace(model="a/model", tokenizer=None, dataset_name="random-mm", seed=None,
                              dataset_path=None, num_prompts=len(outputs), num_warmups=0,
                              metric_percentiles=percentiles, random_input_len=1024,
                              random_output_len=128, disable_tqdm=True)
    return run(mm_processor.main, args)


def mm_header(path):
    rng = random.Random(5)
    ten = [output(rng.random() * 3) for _ in range(10)]
    cases = [
        ("usual", stages(10, rng), ten, 4.5, "99"),
        ("percentiles", stages(7, rng), ten[:7], 4.5, "50, 90,99.9,50"),
        ("nothing told", {}, [output(None)] * 4, 2.0, "99"),
        ("no stages", {}, ten, 2.0, "10,99"),
        ("some failed", stages(2, rng), [output(0.5), output(None, False), output(0.25)], 1.0, "99"),
        ("all failed", {}, [output(None, False)] * 2, 1.0, "99"),
        ("own stages", {"a": {"x_secs": 12.0, "y_secs_secs": 1e-9, "plain": 0.5}}, ten[:1], 1.0,
         "0,100"),
    ]
    with open(path, "w") as f:
        f.write(HEAD % (vllm.__version__, "mm-processor"))
        for i, case in enumerate(cases):
            told = [o.metrics.first_token_latency for o in case[2] if o.finished and o.metrics]
            f.write(c_list("mm_e2el_%d" % i, told or [0.0]))
        f.write("static const struct {\n\tconst char *name, *stages, *percentiles;\n"
                "\tconst double *e2el_s;\n\tsize_t n, completed, failed;\n\tdouble elapsed_s;\n"
                "\tconst char *out, *json;\n} mm_golden[] = {\n")
        for i, (name, told, outputs, elapsed, percentiles) in enumerate(cases):
            out, saved = mm_case(told, outputs, elapsed, percentiles)
            known = len([o for o in outputs if o.finished and o.metrics])
            done = len([o for o in outputs if o.finished])
            f.write('\t{ "%s",\n\t\t%s,\n\t\t"%s", mm_e2el_%d, %d, %d, %d, %r,\n\t\t%s,\n\t\t%s },\n'
                    % (name, c_text(json.dumps(told)), percentiles, i, known, done,
                       len(outputs) - done, elapsed, c_text(out), c_text(saved)))
        f.write("};\n")


if __name__ == "__main__":
    folder = sys.argv[1]
    latency_header(os.path.join(folder, "latency_golden.h"))
    mm_header(os.path.join(folder, "mm_golden.h"))
