# SPDX-License-Identifier: Apache-2.0
"""Making random prompts: ours beside upstream's Python, and its Rust client where there is one.

usage: bench.py --ours BINARY --model DIR [--rust BINARY] [--repeats N] [--prompts N] [--length N]
       [--large N]

Each repeat runs all programs one after the other. Ours and the Rust client are whole processes
of `bench serve --dry-run`; "net" is without what a run of one prompt takes (start, tokenizer).
Upstream's time is get_samples() alone, in a process that has all else behind it.
"""

import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def measured(command: list[str], **more) -> dict:
    """wall and processor seconds and peak MiB of a process, and what it said."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, **more)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {child.returncode}\n{text[-800:]}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024,
            "text": text}


def ours(o: argparse.Namespace, n: int, *more: str) -> dict:
    return measured([o.ours, "bench", "serve", "--dry-run", "--host", "127.0.0.1", "--port", "9",
                     "--model", o.model, "--dataset-name", "random", "--random-input-len",
                     str(o.length), "--num-prompts", str(n), *more])


def rust(o: argparse.Namespace, n: int, *more: str) -> dict:
    out = measured([o.rust, "bench", "serve", "--dry-run", "--host", "127.0.0.1", "--port", "9",
                    "--model", o.model, "--tokenizer", o.model, "--dataset-name", "random",
                    "--random-input-len", str(o.length), "--num-prompts", str(n), *more])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out["text"])
    found = re.search(r"elapsed_seconds=([0-9.]+)", plain)
    out["made"] = float(found[1]) if found else out["wall"]
    return out


def upstream(o: argparse.Namespace, n: int) -> dict:
    out = subprocess.run([sys.executable, f"{HERE}/upstream.py", o.model, str(o.length), str(n)],
                         capture_output=True, check=True)
    return json.loads(out.stdout.decode().strip().split("\n")[-1])


def check_same(o: argparse.Namespace) -> None:
    """The first prompts of both sides are the same text."""
    with tempfile.NamedTemporaryFile() as f:
        ours(o, 8, "--dump-workload", f.name)
        text = "".join(json.loads(line)["prompt"] for line in open(f.name, encoding="utf-8"))
    if hashlib.sha256(text.encode()).hexdigest() != upstream(o, 8)["sha"]:
        sys.exit("the prompts differ from upstream's: nothing to compare")


def show(name: str, values: list[float], unit: str, target: float | None = None) -> None:
    middle = statistics.median(values)
    end = "" if target is None else f"   target >= {target:g}: {'met' if middle >= target else 'missed'}"
    print(f"  {name:<52}{middle:>10.2f}{min(values):>10.2f}{max(values):>10.2f}  {unit}{end}", flush=True)


def compare(o: argparse.Namespace) -> None:
    rows: dict[str, list[float]] = {}

    def put(name: str, value: float) -> None:
        rows.setdefault(name, []).append(value)

    for _ in range(o.repeats):
        one = {x: ours(o, 1, *x.split()) for x in ("", "--prompt-token-ids")}
        many = {x: ours(o, o.prompts, *x.split()) for x in ("", "--prompt-token-ids")}
        theirs = upstream(o, o.prompts)
        put("upstream wall", theirs["wall"])
        put("upstream cpu", theirs["cpu"])
        for what, x in (("text", ""), ("ids", "--prompt-token-ids")):
            net = {k: max(many[x][k] - one[x][k], 1e-3) for k in ("wall", "cpu")}
            put(f"ours {what} wall", many[x]["wall"])
            put(f"ours {what} cpu", many[x]["cpu"])
            put(f"ratio {what} whole", theirs["wall"] / many[x]["wall"])
            put(f"ratio {what} net", theirs["wall"] / net["wall"])
            put(f"ratio {what} cpu net", theirs["cpu"] / net["cpu"])
        if o.rust:
            native = rust(o, o.prompts)
            put("rust wall", native["wall"])
            put("rust made", native["made"])
            put("rust cpu", native["cpu"])
            put("ratio rust", native["wall"] / many[""]["wall"])
        print("; ".join(f"{name} {values[-1]:.2f}" for name, values in rows.items()),
              file=sys.stderr, flush=True)
    print(f"{o.prompts} random prompts of {o.length} tokens, {os.path.basename(o.model)}, "
          f"{o.repeats} repeats; median, least, most")
    show("upstream get_samples(), elapsed", rows["upstream wall"], "s")
    show("upstream get_samples(), processor", rows["upstream cpu"], "s")
    for what, target in (("text", 40), ("ids", 200)):
        show(f"ours as {what}, whole process, elapsed", rows[f"ours {what} wall"], "s")
        show(f"ours as {what}, whole process, processor", rows[f"ours {what} cpu"], "s")
        show(f"upstream / ours as {what}, elapsed, whole", rows[f"ratio {what} whole"], "x", target)
        show(f"upstream / ours as {what}, elapsed, net", rows[f"ratio {what} net"], "x", target)
        show(f"upstream / ours as {what}, processor, net", rows[f"ratio {what} cpu net"], "x")
    if o.rust:
        show("Rust client, whole process, elapsed", rows["rust wall"], "s")
        show("Rust client, by its own clock", rows["rust made"], "s")
        show("Rust client, processor", rows["rust cpu"], "s")
        show("Rust client / ours as text, elapsed, whole", rows["ratio rust"], "x", 2)


def large(o: argparse.Namespace) -> None:
    print(f"{o.large} random prompts of {o.length} tokens, once")
    for what, more in (("ids", ["--prompt-token-ids"]), ("text", [])):
        out = ours(o, o.large, *more)
        show(f"ours as {what}, elapsed", [out["wall"]], "s")
        show(f"ours as {what}, processor", [out["cpu"]], "s")
        show(f"ours as {what}, peak memory", [out["mib"]], "MiB")
        if o.rust and what == "ids":  # as text it takes more than half an hour
            native = rust(o, o.large, *more)
            show("Rust client as ids, elapsed", [native["wall"]], "s")
            show("Rust client as ids, peak memory", [native["mib"]], "MiB")
            show("Rust client / ours as ids, elapsed", [native["wall"] / out["wall"]], "x", 2)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--ours", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--rust")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--prompts", type=int, default=2000)
    p.add_argument("--length", type=int, default=8192)
    p.add_argument("--large", type=int, default=100000, help="0: leave it out")
    o = p.parse_args()
    if o.prompts:
        check_same(o)
        compare(o)
    if o.large:
        large(o)


if __name__ == "__main__":
    main()
