# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/metrics_golden.h: upstream's definitions (serve spec 4) by NumPy over the
record that tests/unit/record_sample.h builds. Run: python golden_metrics.py > metrics_golden.h"""
import math

import numpy as np

START, MS, MASK = 1_700_000_000_000_000_000, 1_000_000, (1 << 64) - 1
PERCENTILES = [0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0]
GOODPUT = {"ttft": 45.0, "tpot": 10.5, "e2el": 400.0}


class Draw:
    def __init__(self):
        self.state = 88172645463325252

    def __call__(self, below):
        s = self.state
        s ^= (s << 13) & MASK
        s ^= s >> 7
        s ^= (s << 17) & MASK
        self.state = s
        return s % below


def sample(n):
    draw, rows = Draw(), []
    for i in range(n):
        due = START + i * 10 * MS + draw(5 * MS)
        sent = due + draw(3 * MS)
        failed = draw(20) == 0
        events = 1 + draw(40)
        prompt = 1 + draw(1000)
        tokens = 0 if draw(10) == 0 else events
        gaps = [20 * MS + draw(30 * MS) if k == 0 else draw(20 * MS) for k in range(events)]
        rows.append((due, sent, failed, prompt, tokens or 1, gaps))
    return rows


def s(ns):
    return float(ns) / 1e9


def score(n):
    rows = sample(n)
    stop = max(sent + sum(gaps) + 1000 for _, sent, _, _, _, gaps in rows)
    duration = s(stop - START)
    ok = [r for r in rows if not r[2]]
    ttft = [s(r[5][0]) for r in ok]
    latency = [s(sum(r[5])) for r in ok]
    queue = [s(r[1] - r[0]) for r in ok]
    itl = [s(g) for r in ok for g in r[5][1:]]
    tpot, all_tpot = [], []
    for r, t, l in zip(ok, ttft, latency):
        v = (l - t) / (r[4] - 1) if r[4] > 1 else 0.0
        all_tpot.append(v)
        if r[4] > 1:
            tpot.append(v)
    limit = {k: v / 1000 for k, v in GOODPUT.items()}
    good = sum(t <= limit["ttft"] and p <= limit["tpot"] and l <= limit["e2el"]
               for t, p, l in zip(ttft, all_tpot, latency))
    starts = [r[1] // 10**9 + s(r[1] % 10**9) for r in ok]
    t0 = min(starts)
    seconds = math.ceil(max(a + l for a, l in zip(starts, latency)) - t0) + 1
    tokens, running = np.zeros(seconds), np.zeros(seconds)
    for r, a, t, l in zip(ok, starts, ttft, latency):
        now = a + t
        tokens[int(now - t0)] += 1
        for g in r[5][1:]:
            now += s(g)
            if int(now - t0) < seconds:
                tokens[int(now - t0)] += 1
        for second in range(int(a - t0), int(a + l - t0) + 1):
            running[second] += 1
    edges = sorted([(a, 1) for a in starts] + [(a + l, -1) for a, l in zip(starts, latency)])
    peak = now = 0
    for _, step in edges:
        now += step
        peak = max(peak, now)
    out = {
        "n": n, "completed": len(ok), "failed": n - len(ok),
        "total_input": sum(r[3] for r in ok), "total_output": sum(r[4] for r in ok),
        "peak_concurrency": int(running.max()), "peak_exact": peak,
    }
    real = {
        "duration": duration, "request_throughput": len(ok) / duration, "goodput": good / duration,
        "output_throughput": out["total_output"] / duration,
        "total_throughput": (out["total_input"] + out["total_output"]) / duration,
        "peak_tokens": float(tokens.max()),
    }
    blocks = [ttft, tpot, itl, latency, queue, [a + b for a, b in zip(latency, queue)]]
    return out, real, [[float(f(b or 0) * 1000) for f in (np.mean, np.median, np.std)]
                       + [float(np.percentile(b or 0, p) * 1000) for p in PERCENTILES] for b in blocks]


print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Made by tests/peer/golden_metrics.py with NumPy {np.__version__}. */")
print("#pragma once")
print("static const double golden_percentiles[] = {", ", ".join(map(repr, PERCENTILES)), "};")
print("#define GOLDEN_VALUES", 3 + len(PERCENTILES))
print("static const struct {\n\tuint32_t n, completed, failed;\n\tint64_t total_input, total_output,"
      " peak_concurrency, peak_exact;\n\tdouble duration, request_throughput, goodput, output_throughput,"
      " total_throughput, peak_tokens;\n\tdouble block[6][GOLDEN_VALUES];\n} golden[] = {")
for n in (1, 2, 7, 300, 2000):
    ints, reals, blocks = score(n)
    print("\t{", ", ".join(str(v) for v in ints.values()) + ",")
    print("\t ", ", ".join(float(v).hex() for v in reals.values()) + ",")
    print("\t {")
    for b in blocks:
        print("\t  {", ",\n\t    ".join(", ".join(v.hex() for v in b[i:i + 3]) for i in range(0, len(b), 3)), "},")
    print("\t }},")
print("};")
