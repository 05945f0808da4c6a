#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a foreign tool's result small enough to keep, and free of this machine's paths and ports.

    small.py FROM TO [FOLDER...]

Numbers are left as they are spelled. Left out: what has an element for each request, and bins.
"""
import json
import os
import re
import sys

LEFT_OUT = {"histogram", "pdf", "percentile_cis", "mean_ci", "variance", "environment", "warnings",
            "api_routes", "errored", "incomplete", "total", "image", "video", "audio", "text",
            "tool_call", "mode", "scheduler_metrics", "outputs", "input_lens", "output_lens"}


def is_kept(key, value):
    """What has the name of something left out may be a plain word of another tool."""
    return key not in LEFT_OUT or isinstance(value, (str, int)) and not isinstance(value, bool)


def small(value):
    if isinstance(value, dict):
        return {k: [] if k == "requests" and isinstance(v, (list, dict)) and "successful" in v
                else small(v)
                for k, v in value.items() if is_kept(k, v)}
    if isinstance(value, list):
        return [small(v) for v in value]
    return value


def given(value):
    """The arguments of a PyTorch record that are not at rest."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "benchmark" in value[0]:
        for record in value:
            args = record["benchmark"]["extra_info"]["args"]
            record["benchmark"]["extra_info"]["args"] = {k: v for k, v in args.items() if v}
            record["metric"]["extra_info"] = {k: v for k, v in record["metric"]["extra_info"].items()
                                              if not isinstance(v, list)}
    return value


def clean(text, folders):
    for folder in folders:
        text = text.replace(os.path.abspath(folder) + "/", "").replace(os.path.abspath(folder), ".")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", text)
    text = re.sub(r"Linux-[-\w.]+", "Linux", text)
    return re.sub(r" object at 0x[0-9a-f]+", "", text)


def main():
    source, target, folders = sys.argv[1], sys.argv[2], sys.argv[3:]
    text = open(source, encoding="utf-8").read()
    if source.endswith("detail.txt"):
        text = "".join(line for line in text.splitlines(True)
                       if not re.search(r'"key": "(loadgen_(file|git|build)|requested_)', line))
        text = re.sub(r'"(pid|tid)": \d+', r'"\1": 1', text)
    elif source.endswith(".json"):
        text = json.dumps(given(small(json.loads(text))), indent=1) + "\n"
        text = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    open(target, "w", encoding="utf-8").write(clean(text, folders))


if __name__ == "__main__":
    main()
