# SPDX-License-Identifier: Apache-2.0
"""Times the hash functions of the vLLM that is installed, for ProfLLM.

Only the functions under test and the clock reads around them are here: what is hashed is drawn by
ProfLLM, and so are the lines that are printed. An algorithm whose package is missing is skipped
with the reason, as in vLLM's own scripts.
"""

import os
import statistics
import sys
import time

from profllm_worker import Refused, serve

WARMUPS = 200


class Hashes:
    engine = "vllm"

    def __init__(self, channel) -> None:
        import vllm

        try:
            from vllm.utils import hashing
        except ImportError:  # before 0.11 they stood in vllm.utils itself
            from vllm import utils as hashing
        if not hasattr(hashing, "sha256"):
            raise ImportError("this vLLM has no vllm.utils.hashing")
        self.version = getattr(vllm, "__version__", "")
        self.hashing, self.channel = hashing, channel
        self.block_ids = []

    @staticmethod
    def features() -> list:
        return ["hash", "block_hash"]

    def function(self, name: str):
        if name == "hash":
            return lambda data: hash(data)  # through a function, like the others
        found = getattr(self.hashing, name, None)
        if found is None:
            raise ModuleNotFoundError(f"vLLM {self.version} has no function {name}")
        return found

    def hash(self, q: dict) -> dict:
        """One function on one value shaped like a block: the hash before it and its tokens."""
        data = (bytes.fromhex(q["bytes"]), tuple(q["ints"]))
        times = []
        try:
            function = self.function(q["function"])
            for _ in range(WARMUPS):
                function(data)
            for i in range(q["iterations"]):
                start = time.perf_counter()
                function(data)
                end = time.perf_counter()
                times.append(end - start)
                if i % 1000 == 999:
                    self.channel.progress(i + 1, q["iterations"])
        except ModuleNotFoundError as error:
            return {"skipped": str(error)}
        return {"mean_s": statistics.mean(times),
                "std_s": statistics.stdev(times) if len(times) > 1 else 0.0}

    def blocks(self, q: dict) -> dict:
        if q.get("is_first", True):
            self.block_ids = []
        self.block_ids.extend(q["ids"])
        return {"n": len(self.block_ids)}

    def block_hash(self, q: dict) -> dict:
        size = q["block_size"]
        blocks = [self.block_ids[i : i + size] for i in range(0, len(self.block_ids), size)]
        if not hasattr(self.hashing, "get_hash_fn_by_name"):
            raise Refused("unsupported", f"vLLM {self.version} has no get_hash_fn_by_name")
        try:
            function = self.hashing.get_hash_fn_by_name(q["algorithm"])
            times = [self.chain(function, blocks) for _ in range(q["trials"])]
        except ModuleNotFoundError as error:
            return {"skipped": str(error)}
        except ValueError as error:  # a release that does not know the name
            return {"skipped": str(error)}
        return {"times_s": times}

    def chain(self, function, blocks: list) -> float:
        seed = os.getenv("PYTHONHASHSEED")
        root = os.urandom(32) if seed is None else function(seed)
        make = getattr(self.hashing, "get_block_hash_fn", None)
        block_hash = make(function) if make else (
            lambda parent, ids, extra: function((parent, tuple(ids), extra)))
        parent = None
        start = time.perf_counter()
        for block in blocks:
            parent = block_hash(parent or root, block, None)
        return time.perf_counter() - start

    def close(self) -> None:
        return None


if __name__ == "__main__":
    sys.exit(serve(Hashes))
