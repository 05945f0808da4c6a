#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/engine_defaults_golden.h anew: its names, with defaults from vLLM's sources.

usage: golden.py [--cache DIR] > FILE
"""
import argparse
import json
import pathlib
import re
import urllib.request

import defaults

HEADER = defaults.ROOT / "tests" / "unit" / "engine_defaults_golden.h"
RELEASES = ("0.11.0", "0.32.0")
WIDTH = 98


def literal(release, arg):
    """The default as a C text of JSON; NULL: the release does not have the argument."""
    if "--" + arg["name"] not in release:
        return "NULL"
    value = release["--" + arg["name"]]
    if isinstance(value, defaults.Unknown):
        raise SystemExit(f"--{arg['name']}: not understood: {value}")
    if defaults.typed(arg, value) is None:
        value = None
    elif arg["kind"] == "float":
        value = float(value)
    elif isinstance(value, list):
        value = " ".join(value)
    return json.dumps(json.dumps(value))


def main():
    parser = argparse.ArgumentParser(usage="golden.py [--cache DIR] > FILE")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("vllm-sources"))
    options = parser.parse_args()
    table = json.loads((defaults.ROOT / "schema" / "engine_args.json").read_text())
    known = {a["name"]: a for a in table["arguments"]}
    old = HEADER.read_text()
    with urllib.request.urlopen(defaults.INDEX, timeout=60) as answer:
        files = json.load(answer)["releases"]
    releases = [defaults.Release(defaults.fetch(v, files[v], options.cache)).arguments()
                for v in RELEASES]
    out, line = old[:old.index("= {\n") + 4], "\t"
    for name in re.findall(r'\{ "([a-z0-9_]+)",', old):
        arg = known[name.replace("_", "-")]
        row = '{ "%s", %s, %s },' % (name, *(literal(r, arg) for r in releases))
        if line.strip() and len(line) + len(row) + 7 > WIDTH:
            out, line = out + line.rstrip() + "\n", "\t"
        line += row + " "
    print(out + line.rstrip() + "\n};")


if __name__ == "__main__":
    main()
