# SPDX-License-Identifier: Apache-2.0
"""An experiment from Python, by ctypes alone:

    python3 run.py quickstart.yaml benchmark.num_prompts=20

Looks for the library as ctypes does (LD_LIBRARY_PATH, ldconfig); PROFLLM_LIB may name it.
"""
import ctypes
import json
import os
import sys

TEXT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
PROGRESS = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)
STATUS = ["completed", "partial", "failed", "interrupted", "refused"]


class Hooks(ctypes.Structure):
    _fields_ = [("self", ctypes.c_void_p), ("line", TEXT), ("report", TEXT), ("warn", TEXT),
                ("progress", PROGRESS)]


class Request(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("config_path", ctypes.c_char_p),
                ("config_text", ctypes.c_char_p), ("set", ctypes.POINTER(ctypes.c_char_p)),
                ("output_path", ctypes.c_char_p), ("hooks", Hooks),
                ("cancel", ctypes.POINTER(ctypes.c_ubyte))]


class Outcome(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int),
                ("document", ctypes.c_char_p), ("error", ctypes.c_char_p),
                ("own", ctypes.c_void_p)]


def load():
    lib = ctypes.CDLL(os.environ.get("PROFLLM_LIB", "libprofllm.so.1"))
    lib.profllm_version.restype = ctypes.c_char_p
    lib.profllm_run.argtypes = [ctypes.POINTER(Request), ctypes.POINTER(Outcome)]
    lib.profllm_release.argtypes = [ctypes.POINTER(Outcome)]
    return lib


def run(lib, text, settings=(), line=None, warn=None):
    """Runs the configuration in text; (status, document as Python objects or None, error)."""
    words = (ctypes.c_char_p * (len(settings) + 1))(*[s.encode() for s in settings], None)
    request = Request(size=ctypes.sizeof(Request), config_text=text.encode(), set=words)
    # Hooks must live as long as the call: they are held by request.
    if line:
        request.hooks.line = TEXT(lambda _, said: line(said.decode()))
    if warn:
        request.hooks.warn = TEXT(lambda _, said: warn(said.decode()))
    outcome = Outcome(size=ctypes.sizeof(Outcome))
    status = lib.profllm_run(ctypes.byref(request), ctypes.byref(outcome))
    document = json.loads(outcome.document) if outcome.document else None
    error = outcome.error.decode() if outcome.error else None
    lib.profllm_release(ctypes.byref(outcome))
    return STATUS[status], document, error


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: run.py CONFIG [KEY=VALUE ...]")
    lib = load()
    with open(sys.argv[1], encoding="utf-8") as file:
        status, document, error = run(lib, file.read(), sys.argv[2:], line=print)
    print("profllm", lib.profllm_version().decode(), status)
    if error:
        sys.exit(error)
    results = document["results"]
    print("%.1f output tokens a second, median time to first token %.1f ms, verdict %s" % (
        results["output_throughput"], results["median_ttft_ms"], document["trust"]["verdict"]))


if __name__ == "__main__":
    main()
