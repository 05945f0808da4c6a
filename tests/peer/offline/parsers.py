# SPDX-License-Identifier: Apache-2.0
"""Upstream's own parsers of the four offline commands, asked many times by one process.

usage: parsers.py < QUESTIONS > ANSWERS      one JSON value a line

A question is a list of words behind `vllm bench`; the answer says what upstream makes of them
before it touches a model: {"status": 0|1|2, "error": last line of what it says, "stdout": what it
prints, "warnings": [...], "values": {dest: value as parsed}, "own": [dests that are no engine
argument]}.
The question ["flags"] is answered with every flag of the four commands.
"""

import contextlib
import io
import json
import os
import sys
import traceback
import warnings

os.environ.setdefault("COLUMNS", "100")
VERBS = ("throughput", "latency", "startup", "mm-processor")
real_stdout = os.dup(1)
os.dup2(2, 1)  # what imports print is no answer


def make_parser():
    import vllm.entrypoints.cli.benchmark.main as bench
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    sys.argv = ["vllm", "bench"]
    parser = FlexibleArgumentParser(prog="vllm")
    subparsers = parser.add_subparsers(required=False, dest="subparser")
    bench.cmd_init()[0].subparser_init(subparsers)
    return parser


def parser_of(parser, verb):
    for word in ("bench", verb):
        [action] = [a for a in parser._actions if hasattr(a, "choices") and isinstance(a.choices, dict)]
        parser = action.choices[word]
    return parser


def engine_dests():
    from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    names = {}
    for make in (EngineArgs, AsyncEngineArgs):
        p = FlexibleArgumentParser()
        make.add_cli_args(p)
        names[make.__name__] = {a.dest for a in p._actions}
    return names


def plain(value):
    """A value as JSON has it; what JSON has no word for is text."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return f"<{type(value).__name__}>"


def check(verb, args):
    if verb == "throughput":
        from vllm.benchmarks.throughput import validate_args

        validate_args(args)
    elif verb == "mm-processor":
        from vllm.benchmarks.mm_processor import validate_args

        validate_args(args)


def ask(parser, engine, words):
    out, err = io.StringIO(), io.StringIO()
    answer = {"status": 0, "error": "", "values": {}, "own": []}
    sys.argv = ["vllm", "bench", *words]
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            args = parser.parse_args(["bench", *words])
            values = dict(vars(args))
            check(words[0], args)
            base = engine["AsyncEngineArgs" if words[0] == "throughput" else "EngineArgs"]
            skip = {"subparser", "bench_type", "dispatch_function", "help"}
            answer["own"] = sorted(set(values) - base - skip)
            answer["values"] = {k: plain(v) for k, v in values.items() if k not in skip}
        except SystemExit as e:
            answer["status"] = e.code if isinstance(e.code, int) else 1
        except BaseException as e:  # whatever it is, the program would end with a traceback
            answer["status"] = 1
            answer["error"] = traceback.format_exception_only(e)[-1].strip()
    answer["warnings"] = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    answer["stdout"] = out.getvalue()
    if answer["status"] and not answer["error"]:
        answer["error"] = (err.getvalue().strip().splitlines() or [""])[-1]
    return answer


def flags(parser, engine):
    found = {}
    for verb in VERBS:
        rows = []
        p = parser_of(parser, verb)
        base = engine["AsyncEngineArgs" if verb == "throughput" else "EngineArgs"]
        for a in p._actions:
            if not a.option_strings:
                continue
            rows.append({
                "flags": a.option_strings,
                "dest": a.dest,
                "is_engine": a.dest in base,
                "action": type(a).__name__,
                "type": getattr(a.type, "__name__", str(a.type)),
                "nargs": a.nargs,
                "choices": plain(list(a.choices)) if a.choices else None,
                "default": plain(p.get_default(a.dest)),
            })
        found[verb] = rows
    return found


def main():
    parser, engine = make_parser(), engine_dests()
    with os.fdopen(real_stdout, "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            words = json.loads(line)
            answer = flags(parser, engine) if words == ["flags"] else ask(parser, engine, words)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
