# SPDX-License-Identifier: Apache-2.0
"""Holds the document of a run on a real engine against what the engine and its package say."""
import importlib.metadata
import json
import os
import re
import subprocess
import sys

failures = 0


def check(name, condition, *why):
    global failures
    print("ok  " if condition else "FAIL", name, *([] if condition else why))
    failures += not condition


document = json.load(open(sys.argv[1], encoding="utf-8"))
server = document["config"]["servers"][0]
results = document["results"]
log = open(os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), server["log"])
           if not os.path.exists(server["log"]) else server["log"], encoding="utf-8").read()
version = importlib.metadata.version("vllm").split("+")[0]  # the server leaves the local part out

check("status", document["status"] == "completed", document["error"])
check("requests", results["completed_requests"] == 40 and results["failed_requests"] == 0)
told = results["profllm"].get("server") or {}
check("output tokens as the engine counts them",
      told.get("generation_tokens") in (None, results["total_output_tokens"]),
      told.get("generation_tokens"), results["total_output_tokens"])
check("prompt tokens as the engine counts them",
      told.get("prompt_tokens") in (None, results["total_input_tokens"]),
      told.get("prompt_tokens"), results["total_input_tokens"])
check("version", server["version"] == version, server["version"], version)
posts = len(re.findall(r'"POST /v1/completions HTTP/1.1" 200', log))
check("requests in the engine's log", posts >= 40, posts)
trust = document["trust"]  # a busy machine may well make it doubtful; then it says why
check("verdict", (trust["verdict"] == "VALID") == (not trust["reasons"]), trust)
check("process memory was seen", bool(document["system"]["processes"]))
check("no GPU was needed", document["system"]["gpus"] == [] and server["gpus"] == [])
left = subprocess.run(["pgrep", "-f", "vllm serve models/qwen3"], capture_output=True, text=True,
                      check=False).stdout.split()
check("nothing is left running", not left, left)
sys.exit(failures > 0)
