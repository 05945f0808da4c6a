# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/search_golden.h: what upstream's two recipes for serve_sla ask for.

    python tests/peer/sweep/golden_search.py > tests/unit/search_golden.h

Own words for the recipes of the sweep spec, 7.6 (v1 and v2), run on systems without noise whose
formula tests/unit/search_systems.h has too: 'how' gives latency over level, limit is 100. A level
that upstream asks for again costs it no run and is left out; so is level 0, which upstream asks
for when 1 has failed.
"""
import math
import random

from scipy.interpolate import PchipInterpolator

SYSTEMS, MAX, MAX_V2, LEVELS = 200, 65536, 8192, 64
draw = random.Random(61)


def latency(system, level):
    how, base, scale = system
    if how == 0:   # a queue: grows without bound towards scale, then with the backlog
        share = min(level / scale, 0.95)
        return base / (1 - share) + max(0.0, 1 - scale / level) * 50 * base
    if how == 1:   # a straight line
        return base + 100 * level / scale
    if how == 2:   # flat, then a line
        return base * max(1.0, level / scale)
    return base * (1 + (level / scale) ** 2)


def estimate(system):
    return system[2] if system[0] == 0 else system[2] * 2.5


def margin(system, level):
    return latency(system, level) - 100


def bisect(system):
    probed = [MAX]
    history = {}

    def probe(level):
        if level not in probed:
            probed.append(level)
        history[level] = margin(system, level)
        return history[level] <= 0

    level = math.ceil(estimate(system))
    low, high = 0, MAX
    while True:
        if not probe(level):
            high = level
            break
        low = level
        level *= 2
        if level >= MAX:
            break
    while high - low > 1:
        middle = (low + high) // 2
        if probe(middle):
            low = middle
        else:
            high = middle
    return probed, low


def interpolate(system):
    history = {}
    while True:
        passing = max((k for k, v in history.items() if v <= 0), default=1)
        failing = min((k for k, v in history.items() if v > 0), default=MAX_V2)
        if passing + 1 >= failing:
            break
        if not history:
            level = MAX_V2
        elif len(history) == 1:
            level = 1
        else:
            points = sorted(history.items())
            curve = PchipInterpolator([k for k, _ in points], [v for _, v in points],
                                      extrapolate=False)
            roots = curve.solve()
            level = int(roots[0]) if len(roots) else (passing + failing) // 2
            if level in history:
                level += 1
        level = max(1, min(level, MAX_V2))
        assert level not in history and len(history) < LEVELS, (system, level, history)
        history[level] = margin(system, level)
    passed = [k for k, v in history.items() if v <= 0]
    return list(history), max(passed, default=0)


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Made by tests/peer/sweep/golden_search.py: upstream's recipes on synthetic systems. */")
print("#pragma once")
print("#include <stdint.h>\n")
print(f"#define SEARCH_GOLDEN_LEVELS {LEVELS}")
print("struct search_golden {")
print("\tunsigned how;")
print("\tdouble base, scale;")
print("\tstruct { int64_t answer; unsigned n; int32_t level[SEARCH_GOLDEN_LEVELS]; } of[2];")
print("};\n")
print("/* of[0]: v1, of[1]: v2 with 8192 for infinite */")
print("static const struct search_golden search_golden[] = {")
for k in range(SYSTEMS):
    while True:
        base = draw.uniform(1, 95) if k % 20 else draw.uniform(101, 150)  # some never pass
        system = (k % 4, round(base, 3), round(math.exp(draw.uniform(math.log(2), math.log(900))), 3))
        if margin(system, MAX_V2) > 0:
            break
    print(f"{{ {system[0]}, {system[1]!r}, {system[2]!r}, {{", end="")
    for probed, answer in (bisect(system), interpolate(system)):
        text = ", ".join(map(str, probed))
        print(f"\n\t{{ {answer}, {len(probed)}, {{ {text} }} }},", end="")
    print(" } },")
print("};")
