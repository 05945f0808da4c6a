#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables and figures of docs/study.md from OUT/results.json.

    report.py OUT/results.json docs/study.md

Replaces what is between the lines <!-- tables --> and <!-- end of tables --> of the page, and
writes study-itl.svg and study-ttft.svg into its folder. Medians over the repeats; where they
differ by more than a tenth, the least and the most follow in brackets.
"""

import json
import math
import os
import statistics
import sys

BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
COLUMNS = [("mean TTFT error (ms)", "ttft_mean_ms"), ("p99 TTFT error (ms)", "ttft_p99_ms"),
           ("p99 ITL error (ms)", "itl_p99_ms"), ("largest ITL error (ms)", "itl_max_ms"),
           ("time (s)", "wall_s"), ("CPU (s)", "cpu_s")]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 70, 190, 30, 45
COLORS = ["#0f4dd6", "#da7931", "#0ca38d", "#9f0258", "#7f5e05", "#ab71f9", "#1d562d", "#801002"]


def number(v: float) -> str:
    return f"{v:.3g}" if abs(v) < 1000 else f"{v:,.0f}"


def cell(values: list[float]) -> str:
    if not values:
        return ""
    low, mid, high = min(values), statistics.median(values), max(values)
    text = number(mid)
    if high - low > 0.1 * abs(mid):
        text += f" ({number(low)} to {number(high)})"
    return text


def ordered(rows: list[dict], key: str) -> list[str]:
    return list(dict.fromkeys(r[key] for r in rows))


def of(rows, scene, tool, key) -> list[float]:
    return [r[key] for r in rows if r["scene"] == scene and r["tool"] == tool and key in r]


def remark(rows, scene, tool) -> str:
    some = [r for r in rows if r["scene"] == scene and r["tool"] == tool]
    lost = sum(r["asked"] - r.get("requests", 0) + r.get("not_joined", 0) for r in some)
    if any(r["status"] == "timeout" for r in some):
        return "did not finish in 600 s"
    if all("requests" not in r for r in some):
        return "no result"
    return f"{100 * lost / sum(r['asked'] for r in some):.1f} % of the requests missing" if lost else ""


def glance(rows: list[dict], key: str, title: str) -> list[str]:
    """One figure of every client in every scene."""
    scenes = ordered(rows, "scene")
    out = [f"### {title}", "", "| client | " + " | ".join(scenes) + " |",
           "|---" + "|---:" * len(scenes) + "|"]
    for tool in ordered(rows, "tool"):
        found = [of(rows, scene, tool, key) for scene in scenes]
        if any(found):
            out.append(f"| {tool} | " + " | ".join(number(statistics.median(v)) if v else ""
                                                   for v in found) + " |")
    return out + [""]


def tables(rows: list[dict]) -> str:
    out = glance(rows, "ttft_mean_ms", "Mean TTFT error, in ms")
    out += glance(rows, "itl_p99_ms", "99th percentile of the ITL error, in ms")
    for scene in ordered(rows, "scene"):
        out += [f"### {scene}", "", "| client | " + " | ".join(c for c, _ in COLUMNS) + " | note |",
                "|---" * (len(COLUMNS) + 2) + "|"]
        for tool in ordered(rows, "tool"):
            if any(r["scene"] == scene and r["tool"] == tool for r in rows):
                out.append(f"| {tool} | " + " | ".join(cell(of(rows, scene, tool, key))
                                                       for _, key in COLUMNS)
                           + f" | {remark(rows, scene, tool)} |")
        out.append("")
    return "\n".join(out)


def figure(rows: list[dict], key: str, title: str) -> str:
    """Both axes logarithmic: streams, and the size of the error."""
    scenes = [s for s in ordered(rows, "scene") if " x " in s and "loop" not in s]
    streams = {r["scene"]: r["streams"] for r in rows}
    lines = {}
    for tool in ordered(rows, "tool"):
        points = [(streams[s], abs(statistics.median(v))) for s in scenes
                  if (v := of(rows, s, tool, key))]
        if points:
            lines[tool] = points
    sizes = [y for p in lines.values() for _, y in p if y > 0]
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    most = math.log10(max(x for p in lines.values() for x, _ in p))
    def at(x: float, y: float) -> tuple[float, float]:
        return (LEFT + math.log10(x) / most * (WIDTH - LEFT - RIGHT), TOP + (high - math.log10(
            max(y, 10 ** low))) / (high - low) * (HEIGHT - TOP - BOTTOM))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="18" font-size="14">{title}</text>']
    for k in range(low, high + 1):
        y = at(1, 10 ** k)[1]
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** k:g} ms</text>')
    for k in range(math.floor(most) + 1):
        x = at(10 ** k, 1)[0]
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10 ** k:,}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
               'streams</text>')
    for i, (tool, points) in enumerate(lines.items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*p) for p in points))
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>'
                for x, y in (at(*p) for p in points)]
        y = TOP + 10 + 20 * i
        out.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="12" height="12" fill="{color}"/>'
                   f'<text x="{WIDTH - RIGHT + 32}" y="{y + 2}">{tool}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        page = f.read()
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(f"{head}{BEGIN}\n\n{tables(rows)}\n{END}{tail}")
    folder = os.path.dirname(sys.argv[2])
    for name, key, title in [("itl", "itl_p99_ms", "p99 of |ITL error|"),
                             ("ttft", "ttft_mean_ms", "mean TTFT error")]:
        with open(os.path.join(folder, f"study-{name}.svg"), "w", encoding="utf-8") as f:
            f.write(figure(rows, key, title))


if __name__ == "__main__":
    main()
