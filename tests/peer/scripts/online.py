# SPDX-License-Identifier: Apache-2.0
"""Upstream's scripts that ask a server, next to ours, case by case against the simulator.

usage: online.py --ours BINARY --model DIR --scripts DIR --data DIR --out DIR --differences FILE
                 [CASE...]
"""

import argparse
import logging
import os
import sys

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    for name in ("ours", "model", "scripts", "data", "out", "differences"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    for name in ("ours", "model", "scripts", "data", "out", "differences"):
        setattr(o, name, os.path.abspath(getattr(o, name)))
    return o


def main() -> int:
    o = arguments()
    sys.path[:0] = [o.scripts, os.path.join(o.scripts, "multi_turn")]
    import benchmark_serving_multi_turn
    import benchmark_serving_structured_output
    import multi_turn
    import peer
    import structured

    multi_turn.warm_up(o.model)
    logging.disable(logging.INFO)
    jobs = [(c["name"], lambda c=c: multi_turn.compare(c, o, benchmark_serving_multi_turn))
            for c in multi_turn.CASES]
    jobs += [(c["name"], lambda c=c: structured.compare(c, o, benchmark_serving_structured_output))
             for c in structured.CASES]
    return peer.run_jobs(jobs, o.case, o.differences)


if __name__ == "__main__":
    sys.exit(main())
