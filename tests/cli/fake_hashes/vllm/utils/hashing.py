# SPDX-License-Identifier: Apache-2.0
"""Hash functions of the names that vLLM's have; what they are called with goes to FAKE_JOURNAL.

xxHash's package is missing, as it is where only vLLM's required ones are installed.
"""
import hashlib
import json
import os


def note(**call) -> None:
    with open(os.environ["FAKE_JOURNAL"], "a", encoding="utf-8") as f:
        f.write(json.dumps(call) + "\n")


def sha256(data) -> bytes:
    note(function="sha256", data=repr(data))
    return hashlib.sha256(repr(data).encode()).digest()


def xxhash(data) -> bytes:
    raise ModuleNotFoundError("No module named 'xxhash'")


def get_hash_fn_by_name(name: str):
    if name == "sha256":
        return sha256
    if name.startswith("xxhash"):
        raise ModuleNotFoundError("No module named 'xxhash'")
    raise ValueError(f"Unsupported hash function: {name}")
