#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/throughput_golden.h: what vLLM's own `bench throughput` prints and saves when
the engine answers as told here.

    python golden_throughput.py ../../unit

Run with the Python that has vLLM (0.32.0 made the file that is there).
"""
import contextlib
import io
import os
import sys
import tempfile
import types

import vllm
from vllm.benchmarks import throughput
from vllm.utils.argparse_utils import FlexibleArgumentParser

from golden import HEAD, c_text

# seconds, backend, sequences, media, of each request: prompt asked for, answer asked for,
# prompt counted, answers counted
CASES = [
    (2.0, "vllm", 1, False, [(10, 5, 10, [5]), (12, 7, 12, [7])]),
    (0.333, "vllm", 3, False, [(10, 5, 11, [5, 5, 4]), (12, 7, 13, [7, 0, 7])]),
    (17.25, "vllm-chat", 1, True, [(10, 5, 300, [5])]),
    (17.25, "vllm", 1, True, [(10, 5, 300, [5])]),
    (3.1, "hf", 2, False, [(1024, 128, 0, []), (1000, 100, 0, [])]),
]


class Output:
    def __init__(self, prompt, answers):
        self.prompt_token_ids = [0] * prompt
        self.outputs = [types.SimpleNamespace(token_ids=[0] * n) for n in answers]


def run(seconds, backend, n, media, rows):
    parser = FlexibleArgumentParser()
    throughput.add_cli_args(parser)
    words = ["--model", "a/model", "--backend", backend, "--n", str(n)]
    if backend == "hf":
        words += ["--hf-max-batch-size", "4", "--tokenizer-mode", "hf"]
    requests = [types.SimpleNamespace(prompt_len=r[0], expected_output_len=r[1],
                                      multi_modal_data={} if media else None) for r in rows]
    outputs = [Output(r[2], r[3]) for r in rows]
    throughput.RequestOutput = Output
    throughput.get_tokenizer = lambda *a, **k: None
    throughput.get_requests = lambda *a: requests
    throughput.run_vllm = throughput.run_vllm_chat = lambda *a, **k: (seconds, outputs)
    throughput.run_hf = lambda *a, **k: seconds
    throughput.EngineArgs = types.SimpleNamespace(from_cli_args=lambda args: None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        args = parser.parse_args(words + ["--output-json", path])
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            throughput.main(args)
        with open(path, encoding="utf-8") as f:
            saved = f.read()
    first, rest = shown.getvalue().split("\n", 1)  # of the dataset without a path
    assert first.startswith("When dataset path"), first
    return rest, saved


def main():
    with open(os.path.join(sys.argv[1], "throughput_golden.h"), "w", encoding="utf-8") as f:
        f.write(HEAD.replace("golden.py", "golden_throughput.py")
                % (vllm.__version__.split("+")[0], "throughput"))
        f.write("static const struct {\n\tdouble elapsed_s;\n\tconst char *backend;\n\tint n;\n"
                "\tbool has_media, is_counted;\n\tsize_t requests;\n"
                "\tuint64_t asked[2], counted[2];\n\tconst char *out, *json;\n"
                "} throughput_golden[] = {\n")
        for seconds, backend, n, media, rows in CASES:
            out, saved = run(seconds, backend, n, media, rows)
            f.write("\t{ %r, \"%s\", %d, %s, %s, %d, { %d, %d }, { %d, %d },\n\t\t%s,\n\t\t%s },\n" % (
                seconds, backend, n, str(media).lower(), str(backend != "hf").lower(), len(rows),
                sum(r[0] for r in rows), sum(r[1] for r in rows),
                sum(r[2] for r in rows), sum(sum(r[3]) for r in rows), c_text(out).replace("\x1b", "\\033"), c_text(saved)))
        f.write("};\n")


main()
