# SPDX-License-Identifier: Apache-2.0
"""Measure LLM servers from Python: whole experiments, single benchmarks, comparisons.

    import profllm
    document = profllm.run("quickstart.yaml", set={"benchmark.num_prompts": 20})
    result = profllm.bench("serve", base_url="http://localhost:8000", model="demo", request_rate=10)
    changes = profllm.compare([result], [other])

Results are plain dicts with the keys of the files that the program writes.
"""
from ._bench import bench, compare
from ._errors import Error, Failed, Interrupted, Refused
from ._frame import frame
from ._native import main, program, version
from ._run import run

__all__ = ["Error", "Failed", "Interrupted", "Refused", "bench", "compare", "frame", "program", "run",
           "version"]
