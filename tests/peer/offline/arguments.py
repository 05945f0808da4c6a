# SPDX-License-Identifier: Apache-2.0
"""Argument lines through upstream's parsers and ours: who takes what, and what it comes to.

usage: arguments.py --ours BINARY --model DIR [--lines N] [--seed N] [VERB...]

Of each line: the exit status; the sentence where upstream raises one of its own; an option of the
line named where the parser refuses it; every option of the line that upstream warns of; and, of a
line that both take, the value of every option that is not the engine's. Nothing is started:
upstream is asked as far as validate_args (parsers.py), ours with --dry-run and --show-config. Lines
are given --strict-args, because ours passes on what nobody knows otherwise.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import lines

HERE = os.path.dirname(os.path.abspath(__file__))
SHOWN = 40
TIMEOUT_S = 60
CONFIG = re.compile(r"^([a-z0-9][a-z0-9-]*) = (.*?)\s+# (default|given|[a-z].*)$")
# Where the statuses differ on purpose: upstream's, what it says; ours, what that says; the row of
# docs/differences.md that settles it. Upstream's parser takes what fails in the run: 0 there.
ON_PURPOSE = [
    (2, r"unrecognized arguments: --disable-frontend", 0, "", "`--disable-frontend-multiprocessing`"),
    (2, r"invalid choice: .* 'random-rerank'", 0, "", "datasets of throughput"),
    (2, r"unrecognized arguments: --(no-)?enable-mm-processor-stats", 0, "", "enable-mm-processor-stats"),
    (2, r"unrecognized arguments: --(backend|input-len)", 0, "", "`--backend` of latency"),
    (0, "", 1, r"Unknown backend: mii", "`--backend mii`"),
    (0, "", 2, r"--[\w-]+: expected at least 1, got", "a wrong value of an option"),
    (0, "", 1, r"Profiling is not enabled", "`--profile` without a profiler"),
    (0, "", 2, r"--metric-percentiles: ", "malformed `--metric-percentiles`"),
    (0, "", 2, r"--num-iters-\w+: expected an integer from 0", "negative numbers of starts"),
    (0, "", 2, r"engine arguments: ", "values of the engine's arguments"),
]
# A run that ends because something is missing: a file, a tokenizer, a value that a dataset can use.
LATE = re.compile(r"cannot open|is not in the cache|no tokenizer|needs RANK|--random-range-ratio|"
                  r"is too small|--random-mm-|--prefix-repetition-|--hf-")
# A field that the command sets, not an option.
FIELDS = {"enable_mm_processor_stats"}


class Upstream:
    """parsers.py, which takes half a minute to begin."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "parsers.py")], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def ask(self, words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def ask(ours, words, *more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PROFLLM_")}
    # Ours after the verb: a line may end in an option without its value, or hold a "--".
    odd = ["--compat", "lengths,dataset-name"] if words[0] == "throughput" else []
    p = subprocess.run([ours, "bench", words[0], "--strict-args", *odd, *more, *words[1:]], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                       check=False, timeout=TIMEOUT_S, env=env)
    return p.returncode, p.stdout, p.stderr


def config(text):
    values = {}
    for line in text.splitlines():
        m = CONFIG.match(line)
        if m:
            try:
                values[m.group(1).replace("-", "_")] = json.loads(m.group(2))
            except json.JSONDecodeError:
                values[m.group(1).replace("-", "_")] = m.group(2)
    return values


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if isinstance(a, dict) and isinstance(b, str):
        try:
            return a == plain_keys(json.loads(b))
        except json.JSONDecodeError:
            return re.sub(r"[\s'\"]", "", str(a)) == re.sub(r"[\s'\"]", "", b)
    return str(a) == str(b)


def plain_keys(value):
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else value


def names_of(words):
    return {w.partition("=")[0].replace("_", "-") for w in words if w.startswith("--") and len(w) > 2}


def refused(words, theirs, stderr):
    """Both refuse the line: for the same reason?"""
    said = re.sub(r"\s+", " ", stderr)
    if theirs["status"] == 2:
        is_named = any(n in said.replace("_", "-") for n in names_of(words)) or words[-1] in said
        return [] if is_named else [f"no option is named: {said[-300:]!r}"]
    text = re.sub(r"\s+", " ", theirs["error"].partition(": ")[2])[:200]
    # That the backend is dead is said before anything that is wrong besides.
    is_said = text in said or "Unknown backend: mii" in said
    return [] if is_said else [f"sentence {text!r}: {said[-300:]!r}"]


def warned(words, theirs, stderr):
    """Upstream warns of defaults of its own, too; what the user gave must be named by ours."""
    problems = []
    for text in theirs["warnings"]:
        name = (re.findall(r"--[a-z-]+", text) or [""])[0]
        is_nothing = f"{name}=0" in words or f"{name} 0" in " ".join(words)
        if name in names_of(words) and not is_nothing and name not in stderr:
            problems.append(f"no warning that names {name}: {text[:160]!r}")
    return problems


def valued(ours, words, theirs):
    stdout = ask(ours, words, "--show-config")[1]
    have, problems = config(stdout), []
    for name in sorted(set(theirs["own"]) - FIELDS):
        if name not in have:
            problems.append(f"{name} is not in --show-config")
        elif not same(theirs["values"][name], have[name]):
            problems.append(f"{name}: upstream {theirs['values'][name]!r}, ours {have[name]!r}")
    return problems


def is_settled(words, theirs, status, stderr, rows):
    """Statuses differ: is that written down?"""
    if theirs["status"] == 0 and status != 0 and LATE.search(stderr):
        return True
    last = (stderr.strip().splitlines() or [""])[-1].replace("_", "-")
    if (theirs["status"], status) == (1, 2) and any(n in last for n in names_of(words)):
        return "| a wrong value of an option |" in rows
    for their, said, our, says, row in ON_PURPOSE:
        if (their, our) == (theirs["status"], status) and re.search(said, theirs["error"]) and re.search(
            says, stderr
        ):
            return row in rows
    return False


def judge(ours, words, theirs, rows):
    status, stdout, stderr = ask(ours, words, "--dry-run")
    if status != theirs["status"]:
        if is_settled(words, theirs, status, stderr, rows):
            return []
        return [f"status {status}, upstream {theirs['status']} ({theirs['error'][:160]}): "
                f"{(stderr.strip().splitlines() or [''])[-1][:200]}"]
    if status:
        return refused(words, theirs, stderr)
    problems = warned(words, theirs, stderr) + valued(ours, words, theirs)
    if theirs["stdout"].strip() not in stdout:
        problems.append(f"stdout without {theirs['stdout'].strip()!r}")
    return problems


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ours", required=True, type=os.path.abspath)
    p.add_argument("--model", required=True, type=os.path.abspath)
    p.add_argument("--lines", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("verb", nargs="*", choices=[[], *lines.WRITTEN])
    o = p.parse_args()
    with open(os.path.join(HERE, "../../../docs/differences.md"), encoding="utf-8") as f:
        rows = f.read()
    upstream = Upstream()
    flags = upstream.ask(["flags"])
    failed = 0
    for verb in o.verb or lines.WRITTEN:
        asked = [[verb, *lines.filled(x, o.model)] for x in lines.lines(verb, flags, o.lines, o.seed)]
        answers = [upstream.ask(words) for words in asked]
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda q: judge(o.ours, *q, rows), zip(asked, answers)))
        wrong = [(q, x) for q, x in zip(asked, found) if x]
        by = [sum(a["status"] == s for a in answers) for s in (0, 1, 2)]
        print(f"{'FAIL' if wrong else 'PASS'}  {verb}: {len(asked)} lines, {by[0]} taken, {by[1]} "
              f"refused by upstream's checks, {by[2]} by its parser; {len(wrong)} differ", flush=True)
        for words, problems in wrong[:SHOWN]:
            print(f"      {json.dumps(words[1:], ensure_ascii=False)}", flush=True)
            for text in problems[:4]:
                print(f"        {text}", flush=True)
        failed += bool(wrong)
    upstream.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
