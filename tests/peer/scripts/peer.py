# SPDX-License-Identifier: Apache-2.0
"""Runs upstream's scripts and ours against a simulator, and keeps what is found.

Importing vLLM takes many seconds, so it is done once: each run of a script is a fork of this
process that executes the script's own file as __main__ with its own arguments.
"""

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "serve"))

from tap import Tap  # noqa: E402

RUN_TIMEOUT_S = 180
READY_TRIES, READY_PAUSE_S = 400, 0.05
PROBLEMS_SHOWN = 6
COLOR = re.compile(r"\x1b\[\d*m|(?<!\w)\[9\dm|\[0m")
CONNECTION = {"host", "accept", "accept-encoding", "user-agent", "connection", "content-length"}


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def read_json(path: str):
    text = read(path)
    return json.loads(text) if text else None


class Verdicts:
    """What one case found: problems, counts, and what differs on purpose."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.counts: dict[str, int] = {}
        self.meant: dict[str, int] = {}

    def check(self, is_right, text: str) -> bool:
        if not is_right:
            self.problems.append(text)
        return bool(is_right)

    def equal(self, what: str, theirs, ours) -> bool:
        return self.check(theirs == ours, f"{what}: upstream {theirs!r:.300}, ours {ours!r:.300}")

    def count(self, what: str, n: int) -> None:
        self.counts[what] = self.counts.get(what, 0) + n

    def intend(self, row: str) -> None:
        self.meant[row] = self.meant.get(row, 0) + 1


class Sim:
    """One `profllm sim` behind a relay that notes every request."""

    def __init__(self, o, folder: str, args: list[str]) -> None:
        port_file = os.path.join(folder, "port")
        if os.path.exists(port_file):
            os.remove(port_file)
        self.log = open(os.path.join(folder, "sim.log"), "w", encoding="utf-8")
        command = [o.ours, "sim", "--port", "0", "--port-file", port_file, "--model", o.model,
                   "--tokenizer", o.model, "--ttft-ms", "4", "--itl-ms", "2", *args]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(READY_TRIES):
            if read(port_file).strip():
                break
            if self.process.poll() is not None:
                raise RuntimeError(f"sim ended: {read(self.log.name)}")
            time.sleep(READY_PAUSE_S)
        self.tap = Tap(int(read(port_file)))
        self.url = f"http://127.0.0.1:{self.tap.port}"

    def stop(self) -> list[dict]:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        return self.tap.stop()


def fork_script(path: str, args: list[str], folder: str, out: str, err: str, prepare=None) -> int:
    """The script as __main__ in a fork of this process; prepare() runs in it first."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            for name, n in ((out, 1), (err, 2)):
                fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                os.dup2(fd, n)
            os.chdir(folder)
            sys.argv = [path, *args]
            sys.path.insert(0, os.path.dirname(path))
            sys.path.insert(0, os.path.dirname(os.path.dirname(path)))
            if prepare:
                prepare()
            runpy.run_path(path, run_name="__main__")
            status = 0
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 1 if e.code else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return wait(pid)


def wait(pid: int) -> int:
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while time.monotonic() < deadline:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 124


def run_ours(o, words: list[str], folder: str, out: str, err: str, env=None) -> int:
    with open(out, "wb") as a, open(err, "wb") as b:
        try:
            return subprocess.run([o.ours, *words], cwd=folder, stdout=a, stderr=b, check=False,
                                  stdin=subprocess.DEVNULL, timeout=RUN_TIMEOUT_S,
                                  env={**os.environ, **(env or {})}).returncode
        except subprocess.TimeoutExpired:
            return 124


def fresh_folder(path: str) -> str:
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def outcome(folder: str, status: int, requests: list[dict]) -> dict:
    """Everything a run left behind; of the requests those of the load."""
    load = [r for r in requests if r["method"] == "POST"
            and r["target"] in ("/v1/chat/completions", "/v1/completions")]
    return {"status": status, "folder": folder, "load": load,
            "stdout": COLOR.sub("", read(os.path.join(folder, "stdout"))),
            "stderr": COLOR.sub("", read(os.path.join(folder, "stderr")))}


def client(who: str, o, case: dict, script: str, verb: list[str], server, out: str,
           prepare=None) -> dict:
    """One client against a simulator of its own. server(url): its words for the server."""
    folder = fresh_folder(os.path.join(out, case["name"], who))
    for name in case.get("beside", []):  # what is named relative to the current folder
        shutil.copy(os.path.join(o.data, name), folder)
    sim = Sim(o, folder, case.get("sim", []))
    fill = {"model": o.model, "data": o.data}
    words = [a.format(**fill) for a in case["args"]]
    own = [a.format(**fill) for a in case.get("own" if who == "ours" else "theirs", [])]
    paths = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    if who == "upstream":
        path = os.path.join(o.scripts, script)
        status = fork_script(path, [*words, *own, *server(sim.url)], folder, *paths,
                             prepare)
    else:
        status = run_ours(o, [*verb, *words, *own, *server(sim.url), "--progress", "none"], folder,
                          *paths)
    return outcome(folder, status, sim.stop())


def fields(request: dict) -> dict:
    return {k.lower(): v for k, v in request["fields"] if k.lower() not in CONNECTION}


def compare_requests(v: Verdicts, theirs: list[dict], ours: list[dict], is_ordered: bool) -> None:
    """Targets, header fields and bodies, byte for byte."""
    def flat(requests):
        rows = [(r["target"], tuple(sorted(fields(r).items())), r["body"]) for r in requests]
        return rows if is_ordered else sorted(rows)

    a, b = flat(theirs), flat(ours)
    v.check(a, "upstream sent no request")
    if not v.equal("number of requests", len(a), len(b)):
        return
    for i, (x, y) in enumerate(zip(a, b)):
        for what, one, other in zip(("target", "header fields", "body"), x, y):
            if not v.equal(f"request {i}: {what}", one, other):
                return
    v.count("requests equal" + ("" if is_ordered else " in any order"), len(a))


def report(name: str, v: Verdicts) -> None:
    counts = ", ".join(f"{n} {what}" for what, n in v.counts.items())
    print(f'{"FAIL" if v.problems else "PASS"}  {name:<30} {counts}', flush=True)
    for text in v.problems[:PROBLEMS_SHOWN]:
        print(f"      {text}", flush=True)
    if len(v.problems) > PROBLEMS_SHOWN:
        print(f"      and {len(v.problems) - PROBLEMS_SHOWN} more", flush=True)


def run_jobs(jobs: list[tuple], wanted: list[str], differences: str) -> int:
    """All jobs or those that are wanted; the exit status."""
    names = [name for name, _ in jobs]
    if unknown := set(wanted) - set(names):
        sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    failed, ran, total, meant = 0, 0, {}, {}
    for name, job in jobs:
        if wanted and name not in wanted:
            continue
        try:
            v = job()
        except Exception as e:
            v = Verdicts()
            v.check(False, f"{type(e).__name__}: {e}\n{traceback.format_exc()}")
        failed, ran = failed + bool(v.problems), ran + 1
        report(name, v)
        for into, more in ((total, v.counts), (meant, v.meant)):
            for what, n in more.items():
                into[what] = into.get(what, 0) + n
    print("together: " + ", ".join(f"{n} {what}" for what, n in total.items()))
    text, missing = read(differences), 0
    for row, n in sorted(meant.items(), key=lambda x: -x[1]):
        print(f"  on purpose {n:>4}  {row}")
        if f"| {row} |" not in text:
            missing += 1
            print(f"FAIL  docs/differences.md has no row {row!r}")
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed or missing else 0
