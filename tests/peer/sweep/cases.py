# SPDX-License-Identifier: Apache-2.0
"""Argument lines and files that both sweep tools are given.

A case: name, steps (argument lines run one after the other in one folder), files to put there
first, and what else is special:

own      arguments that ours gets besides
then     {step: [paths]} removed before that step, or {step: {path: text}} written
env      environment
status   what ours ends with where it is another than upstream's
differs  the row of docs/differences.md that says why they differ, which they must
early    that row where ours finds the mistake before it does anything: no terminal to compare
"""

PORT = "{port}"
SERVE = ["--serve-cmd", f"vllm serve m --port {PORT}"]
BENCH = ["--bench-cmd", "bench --model m --num-prompts 60"]
BASE = [*SERVE, *BENCH, "-e", "x"]
STOP = ["--stop-on-error"]
# Rows of docs/differences.md.
UNLINKED = "pairs that `--link-vars` rejects"
MISSING_RUNS = "`--num-runs` raised with `--resume`"
NO_SUMMARY = "all runs of a level there, its summary not"
JOINED = "`--key=value` in a command"
BROKEN_FILE = "a run's file that cannot be read"
EMPTY = "a parameter file without combinations"
NO_OBJECT = "an item of a parameter file that is no object"
FOLDERS = "control characters in the name of a folder"
NO_RESULT = "a benchmark that leaves no result"
FAILED = "the result of a run that failed"
ENDED = "why a server failed"
CACHES = "caches that cannot be emptied after a run"
UNKNOWN = "a server whose caches nobody knows how to empty"
RESUMED = "`serve_workload --resume`"
END_POINT = "one end point fails"
LEVEL_0 = "levels below 1"
ONE_LEVEL = "`--workload-iters 1`"
EXPLORED = "the explored variable in `--bench-params`"

MANY = {
    "s.json": [
        {
            "max_num_seqs": 32,
            "flag": True,
            "other": False,
            "a.b": True,
            "c": {"k": [1, 2.5]},
            "n": None,
            "f": 1e20,
            "l": [1, "x"],
        },
        {"_benchmark_name": "na/me", "max_num_seqs": 64},
    ],
    "b.json": {"one": {"max_concurrency": 4}, "two": {"request_rate": 2.5, "ext": "a b"}},
}
GRID = {
    "s.json": [{"max_num_seqs": 8}, {"max_num_seqs": 16}],
    "b.json": [{"max_concurrency": 2}, {"max_concurrency": 16}],
}
S, B = ["--serve-params", "s.json"], ["--bench-params", "b.json"]
FAILS = ["--bench-cmd", "bench --fake-fail =2/"]
ONE = ["--num-runs", "1"]


def serve(*more):
    return ["serve", *BASE, *more]


def workload(*more):
    return ["serve_workload", *BASE, *ONE, *more]


def startup(*more):
    return ["startup", "-e", "x", *more]


CASES = [
    {"name": "defaults", "steps": [serve()]},
    {"name": "many", "steps": [serve(*S, *B, "--num-runs", "2")], "files": MANY},
    {"name": "grid", "steps": [serve(*S, *B)], "files": GRID},
    {"name": "only-serve", "steps": [serve(*S, *ONE)], "files": GRID},
    {"name": "only-bench", "steps": [serve(*B, *ONE)], "files": GRID},
    {"name": "empty-list", "differs": EMPTY, "steps": [serve(*B, *ONE)], "files": {"b.json": []}},
    {"name": "empty-dict", "differs": EMPTY, "steps": [serve(*B, *ONE)], "files": {"b.json": {}}},
    {"name": "dry-run", "steps": [serve(*S, *B, "--dry-run")], "files": MANY},
    {"name": "dry-run-default", "steps": [serve("--dry-run", "--show-stdout")]},
    {
        "name": "dry-run-after-run",
        "steps": [serve(*B, *ONE), serve(*B, *ONE, "--resume", "--dry-run")],
        "files": GRID,
    },
    {"name": "show-stdout", "steps": [serve(*ONE, "--show-stdout")]},
    {"name": "output-dir", "steps": [serve(*ONE, "-o", "./a//b/../b/")]},
    {"name": "after-bench", "steps": [serve("--num-runs", "2", "--after-bench-cmd", "touch 'a b'")]},
    {
        "name": "after-bench-other-server",
        "steps": [
            [
                "serve",
                *BASE,
                *ONE,
                "--serve-cmd",
                f"env A=1 vllm serve m --port {PORT}",
                "--after-bench-cmd",
                "true",
            ]
        ],
    },
    {
        "name": "host",
        "steps": [
            [
                "serve",
                *BASE,
                *ONE,
                "--serve-cmd",
                f"vllm serve m --host 127.0.0.1 -p {PORT} --port {PORT}",
            ]
        ],
    },
    {
        "name": "port-overridden",
        "steps": [["serve", *BASE, *ONE, *S, "--serve-cmd", "vllm serve m --port 1"]],
        "files": {"s.json": [{"port": PORT}]},
    },
    {
        "name": "warm-up",
        "steps": [serve(*B, "--num-runs", "2", "--warmup-num-prompts", "3")],
        "files": GRID,
    },
    {
        "name": "warm-up-resumed",
        "steps": [
            serve(*B, *ONE, "--warmup-num-prompts", "3"),
            serve(*B, *ONE, "--warmup-num-prompts", "3", "--resume"),
        ],
        "files": GRID,
    },
    {"name": "warm-up-dry", "steps": [serve("--warmup-num-prompts", "3", "--dry-run")]},
    {
        "name": "link",
        "steps": [serve(*S, *B, *ONE, "--link-vars", "max_num_seqs=max_concurrency")],
        "files": {**GRID, "b.json": [{"max_concurrency": 8.0}, {"max_concurrency": 16}, {"x": 8}]},
    },
    {
        "name": "link-blanks",
        "steps": [serve(*S, *B, *ONE, "--link-vars", " max_num_seqs = max_concurrency ")],
        "files": {**GRID, "b.json": [{"max_concurrency": 8}, {"max_concurrency": 16}]},
    },
    {
        "name": "link-two",
        "differs": UNLINKED,
        "steps": [serve(*S, *B, *ONE, "--link-vars", "a=c,b=d")],
        "files": {"s.json": [{"a": 1, "b": 2}, {"a": 1}], "b.json": [{"c": 1, "d": 2}, {"c": 1, "d": 3}]},
    },
    {
        "name": "link-none",
        "steps": [serve(*S, *B, *ONE, "--link-vars", "max-num-seqs=max_concurrency")],
        "files": GRID,
        "differs": UNLINKED,
        "status": 2,
    },
    {"name": "resume-complete", "steps": [serve(*S, *B), serve(*S, *B, "--resume")], "files": GRID},
    {
        "name": "resume-lost-run",
        "steps": [serve(*S, *B), serve(*S, *B, "--resume")],
        "files": GRID,
        "then": {
            1: [
                "results/x/SERVE--max_num_seqs=16-BENCH--max_concurrency=2/run=1.json",
                "results/x/SERVE--max_num_seqs=16-BENCH--max_concurrency=2/summary.json",
            ]
        },
    },
    {
        "name": "resume-lost-level",
        "steps": [serve(*S, *B), serve(*S, *B, "--resume")],
        "files": GRID,
        "then": {1: ["results/x/SERVE--max_num_seqs=8-BENCH--max_concurrency=16"]},
    },
    {
        "name": "resume-raw-run",
        "differs": NO_SUMMARY,
        "steps": [serve(*B, *ONE), serve(*B, *ONE, "--resume")],
        "files": GRID,
        "then": {
            1: {
                "results/x/BENCH--max_concurrency=2/run=0.json": '{"request_throughput": 1.5, "a": "é"}',
                "results/x/BENCH--max_concurrency=2/summary.json": None,
            }
        },
    },
    {"name": "resume-fewer-runs", "steps": [serve(*B), serve(*B, *ONE, "--resume")], "files": GRID},
    {
        "name": "resume-more-runs",
        "steps": [serve(*B, *ONE), serve(*B, "--resume")],
        "files": GRID,
        "differs": MISSING_RUNS,
    },
    {
        "name": "resume-broken-file",
        "steps": [serve(*B, *ONE), serve(*B, *ONE, "--resume")],
        "files": GRID,
        "then": {
            1: {
                "results/x/BENCH--max_concurrency=2/run=0.json": '{"request_thr',
                "results/x/BENCH--max_concurrency=2/summary.json": None,
            }
        },
        "differs": BROKEN_FILE,
    },
    {
        "name": "resume-new-point",
        "steps": [serve(*B, *ONE), serve("--bench-params", "b2.json", *ONE, "--resume")],
        "files": {**GRID, "b2.json": [{"max_concurrency": 1}, {"max_concurrency": 2}]},
    },
    {
        "name": "names-override",
        "steps": [serve(*S, *B, *ONE)],
        "files": {
            "s.json": {"s/1": {"x": 1}, "..": {"y": 2}},
            "b.json": [{"x": 2, "_benchmark_name": "b"}, {}],
        },
    },
    {
        "name": "overrides-in-place",
        "steps": [
            [
                "serve",
                *BASE,
                *ONE,
                *S,
                *B,
                "--serve-cmd",
                f"vllm serve m --max_num_seqs 1 --port {PORT} --flag --no-other",
                "--bench-cmd",
                "bench --num-prompts 60 --random-input-len 5 --x 'a b' --e \"it's\"",
            ]
        ],
        "files": {
            "s.json": [{"max-num-seqs": 2, "flag": True, "other": False}, {"other": True, "flag": False}],
            "b.json": [{"random_input_len": 7, "x": "c d", "e": "q'\"q"}],
        },
    },
    {
        "name": "joined-override",
        "steps": [["serve", *BASE, *ONE, *B, "--bench-cmd", "bench --num-prompts=60"]],
        "files": {"b.json": [{"num_prompts": 7}]},
        "differs": JOINED,
    },
    {
        "name": "texts",
        "steps": [serve(*B, *ONE)],
        "files": {
            "b.json": [
                {"x": "é", "y": "a  b", "z": "it's", "w": 'say "hi"', "v": "'\""},
                {"x": "\u00e9", "big": 2**70},
                {"x": [None, True, "it's", {"a": 1.0}]},
                {"e": 1e-7, "g": 123456789.125, "h": -0.0},
            ]
        },
    },
    {
        "name": "control-character",
        "steps": [serve(*B, *ONE)],
        "files": {"b.json": [{"y": "a\tb"}]},
        "differs": FOLDERS,
    },
    {
        "name": "raw-json",
        "steps": [serve(*B, *ONE)],
        "files": {
            "b.json": '[{"a": 1.50, "b": 1E3, "c": 1e5, "d": 1.0e-10, "e": 1000000000000000000.0, "a": 2}]\n'
        },
    },
    {
        "name": "columns",
        "steps": [serve(*S, *B, *ONE)],
        "files": {
            "s.json": [{"a": 1}, {"a": 2.5, "b": True}, {"b": None, "c": "x,y"}],
            "b.json": [
                {"_benchmark_name": "lines", "d": 'q"q', "e": "l1\nl2"},
                {"f": 10**18, "g": [1, 2]},
                {"f": False, "h": 1e300},
            ],
        },
    },
    {
        "name": "fails-recorded",
        "steps": [
            serve(*B, "--num-runs", "2", *FAILS, "--continue-on-error", "--warmup-num-prompts", "2")
        ],
        "files": GRID,
        "status": 1,
    },
    {
        "name": "fails-all",
        "steps": [serve(*ONE, "--bench-cmd", "bench --fake-fail x/", "--continue-on-error")],
        "status": 1,
    },
    {
        "name": "fails-then-resumed",
        "differs": FAILED,
        "steps": [serve(*B, *ONE, *FAILS, "--continue-on-error"), serve(*B, *ONE, "--resume")],
        "files": GRID,
        "status": [1, 0],
    },
    {
        "name": "server-fails-recorded",
        "differs": ENDED,
        "steps": [serve(*S, *B, *ONE, "--continue-on-error")],
        "status": 1,
        "files": {**GRID, "s.json": [{"fake-exit": 3}, {"max_num_seqs": 3}]},
    },
    {
        "name": "server-fails-default",
        "differs": ENDED,
        "steps": [
            [
                "serve",
                *BASE,
                *ONE,
                "--continue-on-error",
                "--serve-cmd",
                f"vllm serve m --port {PORT} --fake-exit 4",
            ]
        ],
        "status": 1,
    },
    {
        "name": "workload",
        "steps": [workload(*B, "--workload-iters", "5")],
        "files": {"b.json": [{"ext": 1}]},
    },
    {"name": "workload-default", "steps": [workload()]},
    {
        "name": "workload-concurrency",
        "steps": [workload("--workload-var", "max_concurrency")],
        "env": {"FAKE_SYSTEM": '{"capacity": 90}'},
    },
    {
        "name": "workload-two-runs",
        "steps": [workload("--num-runs", "2", "--workload-iters", "4", *S)],
        "files": GRID,
        "env": {"FAKE_SYSTEM": '{"noise": 0.3}'},
    },
    {"name": "workload-two", "steps": [workload("--workload-iters", "2")]},
    {
        "name": "workload-narrow",
        "steps": [workload("--workload-iters", "8")],
        "env": {"FAKE_SYSTEM": '{"capacity": 3}'},
    },
    {
        "name": "workload-half-even",
        "steps": [workload("--workload-iters", "6")],
        "env": {"FAKE_SYSTEM": '{"capacity": 8.47}'},
    },
    {
        "name": "workload-named",
        "steps": [workload(*S, *B, "--workload-iters", "3")],
        "files": MANY,
        "then": {0: {"b.json": '{"one": {"num_prompts": 9}, "two": {"num-prompts": 12}}'}},
    },
    {
        "name": "workload-prompts-joined",
        "steps": [
            workload("--workload-iters", "3", "--bench-cmd", "bench --num-prompts=31 --num-prompts 9")
        ],
    },
    {
        "name": "workload-1000-prompts",
        "steps": [workload("--workload-iters", "3", "--bench-cmd", "bench")],
    },
    {
        "name": "workload-warm-up",
        "steps": [workload("--workload-iters", "3", "--warmup-num-prompts", "2")],
    },
    {
        "name": "workload-dry",
        "steps": [workload(*B, *S, "--dry-run")],
        "files": {**GRID, "b.json": [{"ext": 1}, {"num_prompts": 3}]},
    },
    {
        "name": "workload-resumed",
        "steps": [workload("--workload-iters", "4"), workload("--workload-iters", "4", "--resume")],
        "differs": RESUMED,
    },
    {
        "name": "workload-more-levels",
        "differs": RESUMED,
        "steps": [workload("--workload-iters", "3"), workload("--workload-iters", "5", "--resume")],
    },
    {
        "name": "workload-fails",
        "differs": END_POINT,
        "steps": [
            workload(
                "--workload-iters", "4", "--continue-on-error", "--bench-cmd", "bench --fake-fail rate=1/"
            )
        ],
        "status": 1,
    },
    {
        "name": "workload-linked",
        "differs": UNLINKED,
        "steps": [workload("--workload-iters", "3", "--link-vars", "max_num_seqs=n", *S, *B)],
        "files": {**GRID, "b.json": [{"n": 8}, {"n": 9}]},
    },
    {
        "name": "startup",
        "steps": [
            startup(
                "--serve-params",
                "s.json",
                "--startup-params",
                "p.json",
                "--startup-cmd",
                "vllm bench startup --output_json=zz --output-json zz --output-json=y",
            )
        ],
        "files": {
            "s.json": [{"max_model_len": 64, "nonsense": 1, "zz": 2, "compilation-config.mode": 3}],
            "p.json": {"n1": {"num_iters_cold": 2}, "n2": {"bad": 1}},
        },
    },
    {"name": "startup-defaults", "steps": [startup()]},
    {
        "name": "startup-dry",
        "steps": [startup("--dry-run", "--num-runs", "2", "--serve-params", "s.json")],
        "files": {"s.json": [{"enforce_eager": True}, {"tp": 2}, {"tensor-parallel-size": 2}]},
    },
    {
        "name": "startup-resumed",
        "steps": [
            startup("--serve-params", "s.json", "--num-runs", "2"),
            startup("--serve-params", "s.json", "--num-runs", "3", "--resume"),
        ],
        "files": {"s.json": [{"max_num_seqs": 8}, {"max_num_seqs": 16}]},
    },
    {
        "name": "startup-keys",
        "steps": [startup("--dry-run", "--startup-params", "p.json")],
        "files": {
            "p.json": [
                {k: 1}
                for k in (
                    "config",
                    "model",
                    "num-iters-warmup",
                    "num_iters_warm",
                    "output_json",
                    "host",
                    "port",
                    "cc",
                    "O",
                    "max-num-seqs",
                    "max_num_batched_tokens",
                    "speculative_config.method",
                    "api_key",
                    "help",
                    "num_warmup_cold",
                    "disable_log_stats",
                    "enable_log_requests",
                    "no_enable_prefix_caching",
                    "-x",
                    "hf-overrides",
                    "kv_cache_dtype",
                    "load_format",
                    "moe_backend",
                    "attention_config.backend",
                )
            ]
        },
    },
    {
        "name": "startup-strict-ok",
        "steps": [startup("--strict-params", "--serve-params", "s.json")],
        "files": {"s.json": [{"max_model_len": 64}]},
    },
]


def bad_file(name, text, differs=None):
    return {"name": f"bad-{name}", "steps": [serve(*B)], "files": {"b.json": text}, "differs": differs}


REFUSED = [
    bad_file("number", "3"),
    bad_file("text", '"x"'),
    bad_file("null", "null"),
    bad_file("bool", "true"),
    bad_file("float", "1.5"),
    bad_file("item-number", "[1]", NO_OBJECT),
    bad_file("item-text", '["x"]'),
    bad_file("item-null", "[null]", NO_OBJECT),
    bad_file("item-list", "[[]]"),
    bad_file("duplicate", '[{"_benchmark_name": "x"}, {"_benchmark_name": "x"}]'),
    bad_file("duplicate-dict", '{"a": {"_benchmark_name": "z"}, "b": {"_benchmark_name": "z"}}'),
    {"name": "bad-serve-file", "differs": NO_OBJECT, "steps": [serve(*S)], "files": {"s.json": "[2]"}},
    {"name": "num-runs-0", "steps": [serve("--num-runs", "0")]},
    {"name": "num-runs-minus", "steps": [serve("--num-runs", "-3")]},
    {"name": "num-runs-text", "steps": [serve("--num-runs", "x")]},
    {"name": "warm-up-minus", "steps": [serve("--warmup-num-prompts", "-1")]},
    {"name": "exists", "steps": [serve()], "files": {"results/x/a": "1"}},
    {"name": "exists-dry", "steps": [serve("--dry-run")], "files": {"results/x/a": "1"}},
    {
        "name": "exists-path",
        "steps": [serve("-o", ".//results/../results/")],
        "files": {"results/x/a": "1"},
    },
    {"name": "exists-not", "steps": [serve("--resume")]},
    {"name": "exists-not-dry", "steps": [serve("--resume", "--dry-run", "-o", "/nowhere")]},
    {"name": "no-serve-cmd", "steps": [["serve", *BENCH]]},
    {"name": "no-bench-cmd", "steps": [["serve", *SERVE]]},
    {"name": "unknown-option", "steps": [serve("--nonsense")]},
    {"name": "timeout-text", "steps": [serve("--server-ready-timeout", "x")]},
    {
        "name": "workload-override",
        "early": EXPLORED,
        "steps": [workload(*B)],
        "files": {"b.json": [{"a": 1}, {"request-rate": 1}]},
    },
    {
        "name": "workload-override-2",
        "early": EXPLORED,
        "steps": [workload(*B, "--workload-var", "max_concurrency")],
        "files": {"b.json": [{"max_concurrency": 1}]},
    },
    {
        "name": "workload-override-dry",
        "steps": [workload(*B, "--dry-run")],
        "files": {"b.json": {"n": {"request_rate": 1}}},
    },
    {"name": "workload-iters-text", "steps": [workload("--workload-iters", "x")]},
    {"name": "workload-var-bad", "steps": [workload("--workload-var", "qps")]},
    {
        "name": "startup-strict",
        "steps": [startup("--strict-params", "--serve-params", "s.json")],
        "files": {"s.json": [{"max_model_len": 64, "nonsense": 1}, {"b": 2}]},
    },
    {
        "name": "startup-strict-named",
        "steps": [startup("--strict-params", "--startup-params", "s.json")],
        "files": {"s.json": {"n": {"z": 1, "b.c": 2}}},
    },
    {"name": "startup-num-runs-0", "steps": [startup("--num-runs", "0")]},
    {"name": "startup-exists", "steps": [startup()], "files": {"results/x/a": "1"}},
    {
        "name": "startup-bad-file",
        "differs": NO_OBJECT,
        "steps": [startup("--startup-params", "s.json")],
        "files": {"s.json": "[0]"},
    },
    {"name": "startup-fails", "steps": [startup("--startup-cmd", "false")], "own": STOP},
    {"name": "bench-fails", "steps": [serve(*B, *FAILS)], "files": GRID, "own": STOP},
    {"name": "bench-missing", "steps": [serve("--bench-cmd", "nosuchprogram serve")], "own": STOP},
    {
        "name": "bench-no-file",
        "differs": NO_RESULT,
        "steps": [serve("--bench-cmd", "bench --fake-no-file")],
        "own": STOP,
    },
    {
        "name": "server-exits",
        "steps": [["serve", *BASE, "--serve-cmd", "vllm serve --fake-exit 5"]],
        "own": STOP,
    },
    {
        "name": "server-missing",
        "steps": [["serve", *BASE, "--serve-cmd", "nosuchprogram serve", "--after-bench-cmd", "true"]],
        "own": STOP,
    },
    {
        "name": "server-late",
        "steps": [
            [
                "serve",
                *BASE,
                "--serve-cmd",
                "sleep 60",
                "--server-ready-timeout",
                "2",
                "--after-bench-cmd",
                "true",
            ]
        ],
        "own": STOP,
    },
    {
        "name": "server-unknown",
        "differs": UNKNOWN,
        "steps": [["serve", *BASE, "--serve-cmd", f"engine serve m --port {PORT}"]],
        "own": STOP,
    },
    {
        "name": "reset-refused",
        "differs": CACHES,
        "steps": [
            [
                "serve",
                *BASE,
                "--serve-cmd",
                f"vllm serve m --port {PORT} --fake-status /reset_mm_cache=500",
            ]
        ],
        "own": STOP,
    },
    {
        "name": "after-bench-fails",
        "differs": CACHES,
        "steps": [serve("--after-bench-cmd", "false")],
        "own": STOP,
    },
    {
        "name": "workload-slow",
        "differs": LEVEL_0,
        "steps": [workload("--workload-iters", "4")],
        "env": {"FAKE_SYSTEM": '{"capacity": 0.3}'},
        "own": STOP,
    },
    {"name": "workload-iters-1", "early": ONE_LEVEL, "steps": [workload("--workload-iters", "1")]},
]
