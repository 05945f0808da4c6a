# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/monotone_golden.h: SciPy's PchipInterpolator at random points.

    python tests/peer/sweep/golden_monotone.py > tests/unit/monotone_golden.h
"""
import random

from scipy.interpolate import PchipInterpolator
import scipy

CURVES, POINTS_MAX, PROBES = 60, 9, 4
draw = random.Random(6)

print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Made by tests/peer/sweep/golden_monotone.py with SciPy {scipy.__version__}. */")
print("#pragma once")
print("#include <math.h>\n")
print(f"#define MONOTONE_POINTS {POINTS_MAX}")
print(f"#define MONOTONE_PROBES {PROBES}")
print("struct monotone_golden {")
print("\tunsigned n;")
print("\tdouble x[MONOTONE_POINTS], y[MONOTONE_POINTS], slope[MONOTONE_POINTS];")
print("\tdouble at[MONOTONE_PROBES], value[MONOTONE_PROBES], root;")
print("};\n")
print("static const struct monotone_golden monotone_golden[] = {")


def row(values):
    return "{ " + ", ".join(repr(float(v)) for v in values) + " }"


for k in range(CURVES):
    n = draw.randint(2, POINTS_MAX)
    x = sorted(draw.sample(range(1, 70000 if k % 2 else 40), n))
    kind = k % 4
    if kind == 0:
        y = sorted(draw.uniform(-50, 400) for _ in x)
    elif kind == 1:
        y = [draw.uniform(-3, 3) for _ in x]
    elif kind == 2:
        y = [float(draw.randint(-2, 2)) for _ in x]
    else:
        y = [v * v / 1000.0 - draw.uniform(0, 300) for v in x]
    curve = PchipInterpolator(x, y, extrapolate=True)
    at = [draw.uniform(x[0] - 2, x[-1] + 2) for _ in range(PROBES)]
    roots = [r for r in PchipInterpolator(x, y, extrapolate=False).solve() if r == r]
    root = repr(float(roots[0])) if roots else "NAN"
    print(f"\t{{ {n}, {row(x)},\n\t  {row(y)},\n\t  {row(curve.derivative()(x))},\n"
          f"\t  {row(at)},\n\t  {row(curve(at))}, {root} }},")
print("};")
