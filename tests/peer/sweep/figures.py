# SPDX-License-Identifier: Apache-2.0
"""Figures of random sweeps: what upstream's plotting library really drew beside our tables.

usage: figures.py --ours BINARY --out DIR [--folders N] [--first SEED]

For every seed a folder of summary.json files and a few argument lines. Upstream's `plot` runs whole;
where it would save a picture, the points of every line and band on every panel are written down
instead. Ours must have in the .dat beside each figure: the same figures, panels, titles and curves,
points equal to 1e-9. `plot_pareto`: the same points, the same frontier, the same columns.
"""

import argparse
import csv
import glob
import io
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys

import upstream
from judge import Counts, near, read

LINES = 4  # argument lines a folder


def records(draw: random.Random) -> list[dict]:
    """One sweep: some parameters, several runs of each point."""
    rows, has_rate = [], draw.random() < 0.5
    for tp in draw.sample([1, 2, 4], draw.randint(1, 3)):
        for seqs in draw.sample([8, 16, 64], draw.randint(1, 2)):
            for load in draw.sample([1, 2, 4, 8, 16.5, 32], draw.randint(2, 5)):
                for run in range(draw.randint(1, 3)):
                    base = load * tp / (1 + load / 9) * draw.uniform(0.9, 1.1)
                    rows.append(
                        {
                            "model_id": draw.choice(["a/b", "c"]),
                            "max_concurrency": load if not has_rate else None,
                            "request_rate": load if has_rate else draw.choice(["inf", "inf", 7]),
                            "max_concurrent_requests": int(load) + run,
                            "run_number": run,
                            "tensor_parallel_size": tp,
                            "max_num_seqs": seqs,
                            "enforce_eager": seqs == 16,
                            "output_throughput": 100 * base,
                            "total_token_throughput": round(450 * base, 2),
                            "median_ttft_ms": 5 + 30 / tp * load + run,
                            "p99_ttft_ms": 9 + 60 / tp * load,
                            "request_throughput": base,
                            "completed": draw.choice([100, 200]),
                        }
                    )
                    if draw.random() < 0.1:
                        rows[-1]["p99_ttft_ms"] = None
    draw.shuffle(rows)
    return rows


def plot_line(draw: random.Random) -> list[str]:
    keys = ["tensor_parallel_size", "max_num_seqs", "enforce_eager", "model_id", "completed"]
    draw.shuffle(keys)
    argv = [
        "plot",
        "e",
        "--var-x",
        draw.choice(["total_token_throughput", "max_concurrent_requests", "completed", "max_num_seqs"]),
        "--var-y",
        draw.choice(["median_ttft_ms", "p99_ttft_ms", "request_throughput"]),
    ]
    argv += ["--curve-by", ",".join(keys[: draw.choice([0, 1, 1, 2, 3, 4])])]
    for option, rare in (("--row-by", 0.6), ("--col-by", 0.6), ("--fig-by", 0.75)):
        if draw.random() > rare:
            argv += [option, ",".join(draw.sample(["run_number", *keys], draw.randint(1, 2)))]
    filters = [
        "max_num_seqs!=8",
        "tensor_parallel_size<=2",
        "request_throughput<20.5",
        "model_id=='a/b'",
        "completed>100",
        "model_id!=c",
        "enforce_eager==1",
        "run_number<1",
        "median_ttft_ms>=1e1",
        "request_rate==inf",
        "max_concurrent_requests>3",
        "tensor_parallel_size==2.0",
    ]
    if draw.random() < 0.6:
        argv += ["--filter-by", ",".join(draw.sample(filters, draw.randint(1, 2)))]
    bins = ["total_token_throughput%500", "median_ttft_ms%12.5", "max_concurrent_requests%4"]
    if draw.random() < 0.5:
        argv += ["--bin-by", ",".join(draw.sample(bins, draw.randint(1, 2)))]
    argv += ["--no-error-bars"] * (draw.random() < 0.3)
    argv += ["--fig-name", "my fig"] * (draw.random() < 0.2)
    return argv


def pareto_line(draw: random.Random) -> list[str]:
    argv = ["plot_pareto", "e"]
    if draw.random() < 0.4:
        argv += [
            "--user-count-var",
            draw.choice(["max_concurrent_requests", "request-rate", "nothing", "completed"]),
        ]
    if draw.random() < 0.4:
        argv += ["--gpu-count-var", draw.choice(["tensor_parallel_size", "nothing", "max-num-seqs"])]
    return argv


def drawn(grid) -> list[dict]:
    """Every panel of a seaborn grid with the data of its lines and bands."""
    panels = []
    for ax in grid.axes.flat:
        lines = [[list(map(float, x)) for x in (line.get_xdata(), line.get_ydata())] for line in ax.lines]
        bands = [
            [list(map(float, v)) for path in c.get_paths() for v in path.vertices] for c in ax.collections
        ]
        panels.append({"title": ax.get_title(), "lines": [x for x in lines if x[0]], "bands": bands})
    return panels


def listen() -> None:
    import seaborn

    relplot, scatter, line = seaborn.relplot, seaborn.scatterplot, seaborn.lineplot
    kept = {}

    def save_as(grid):
        def save(path, **_):
            with open(str(path) + ".points", "w", encoding="utf-8") as f:
                json.dump(drawn(grid), f)

        return save

    def draw(*args, **options):
        grid = relplot(*args, **options)
        grid.savefig = save_as(grid)
        return grid

    def note(name, function):
        def called(*args, **options):
            kept[name] = options["data"]
            if name == "frontier":
                os.makedirs("e/pareto", exist_ok=True)
                kept["points"].to_csv("e/pareto/points", index=False)
                kept["frontier"].to_csv("e/pareto/frontier", index=False)
            return function(*args, **options)

        return called

    seaborn.relplot = draw
    seaborn.scatterplot, seaborn.lineplot = note("points", scatter), note("frontier", line)


def run(who: str, argv: list[str], data: list[list[dict]], o) -> dict:
    folder = os.path.join(o.out, who)
    shutil.rmtree(folder, ignore_errors=True)
    for i, rows in enumerate(data):
        path = os.path.join(folder, "e", f"p{i}", "summary.json")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=4)
    out, err = folder + ".stdout", folder + ".stderr"
    if who == "upstream":
        status = upstream.run(argv, folder=folder, stdout=out, stderr=err, env={}, listen=listen)
    else:
        with open(out, "wb") as a, open(err, "wb") as b:
            status = subprocess.run(
                [o.ours, "bench", "sweep", *argv],
                stdout=a,
                stderr=b,
                cwd=folder,
                timeout=120,
                check=False,
            ).returncode
    files = {
        os.path.relpath(p, folder): read(p)
        for p in glob.glob(os.path.join(glob.escape(folder), "**", "*"), recursive=True)
        if os.path.isfile(p) and not p.endswith(".png") and not p.endswith("summary.json")
    }
    return {"status": status, "stdout": read(out), "stderr": read(err), "files": files}


def table(text: str) -> dict[str, list]:
    """Our .dat: for each panel's title the curves, each a list of x, y, low, high."""
    panels: dict[str, list] = {}
    for block in text.split("\n\n\n"):
        head = re.search(r"^# panel (\d+)(?: \((.*)\))?: (.*)$", block, re.M)
        if not head:
            continue
        rows = [
            list(map(float, line.split()[:4]))
            for line in block.splitlines()
            if line and not line.startswith("#")
        ]
        panels.setdefault(head.group(2) or "", []).append(rows)
    return panels


def band(vertices: list, x: float) -> tuple[float, float]:
    ys = [v[1] for v in vertices if v[0] == x]
    return (min(ys), max(ys)) if ys else (math.nan, math.nan)


def upstream_table(panels: list[dict]) -> dict[str, list]:
    out: dict[str, list] = {}
    for panel in panels:
        curves = []
        for i, (xs, ys) in enumerate(panel["lines"]):
            vertices = panel["bands"][i] if i < len(panel["bands"]) else []
            curves.append([[x, y, *band(vertices, x)] for x, y in zip(xs, ys) if math.isfinite(y)])
        out[panel["title"].replace("\n", " ")] = curves
    return out


def same_curve(a: list, b: list) -> bool:
    if len(a) != len(b):
        return False
    for p, q in zip(a, b):
        if not near(p[0], q[0]) or not near(p[1], q[1]):
            return False
        # A point of one run has no band, or one without height.
        if math.isfinite(p[2]) and p[2] != p[3] and not (near(p[2], q[2]) and near(p[3], q[3])):
            return False
    return True


def judge_figure(name: str, a: dict, b: dict, counts: Counts) -> list[str]:
    problems = []
    a = {k: [c for c in v if c] for k, v in a.items()}
    b = {k: [c for c in v if c] for k, v in b.items()}
    a, b = ({k: v for k, v in x.items() if v} for x in (a, b))
    if sorted(a) != sorted(b):
        problems.append(f"{name}: panels upstream {sorted(a)}, ours {sorted(b)}")
    for title in sorted(set(a) & set(b)):
        rest = list(b[title])
        counts.add("panels", 1)
        for curve in a[title]:
            counts.add("curves", 1)
            counts.add("points", len(curve))
            counts.add("bands at a point", sum(math.isfinite(p[2]) and p[2] != p[3] for p in curve))
            for other in rest:
                if same_curve(curve, other):
                    rest.remove(other)
                    break
            else:
                problems.append(f"{name} ({title}): curve {curve} is not among ours: {rest[:4]}")
        if rest:
            problems.append(f"{name} ({title}): ours besides {rest}")
    return problems


def judge(argv: list[str], a: dict, b: dict, counts: Counts) -> list[str]:
    problems = []
    if a["status"] != b["status"]:
        return [
            f"exit status upstream {a['status']}, ours {b['status']}: {a['stderr'][-99:]} {b['stderr'][-99:]}"
        ]
    # Of several figures upstream's processes mix their lines, and the pool is left after the first
    # result, so that the last ones may not be drawn.
    lines = a["stdout"].splitlines(), b["stdout"].splitlines()
    if lines[1].count("[BEGIN FIGURE]") == 1 and lines[0] != [x for x in lines[1] if x in lines[0]]:
        problems.append(f"terminal upstream {lines[0]}, ours {lines[1]}")
    for name in sorted(a["files"]):
        if not name.endswith(".points"):
            continue
        dat = name.removesuffix(".png.points") + ".dat"
        counts.add("figures", 1)
        if dat not in b["files"]:
            problems.append(f"ours has no {dat}, but {sorted(b['files'])}")
            continue
        problems += judge_figure(
            dat, upstream_table(json.loads(a["files"][name])), table(b["files"][dat]), counts
        )
    if argv[0] == "plot_pareto" and a["status"] == 0:
        problems += judge_pareto(a["files"], b["files"], counts)
    return problems


def numbers(text: str) -> tuple[list[str], list[tuple]]:
    """Column names, and the four numbers of every row that pareto adds."""
    rows = list(csv.DictReader(io.StringIO(text)))
    names = list(rows[0]) if rows else []
    keys = ("tokens_per_user", "tokens_per_gpu", "user_count_estimate", "gpu_count")
    return names, [tuple(float(r[k]) for k in keys) + (r.get("is_frontier"),) for r in rows]


def judge_pareto(a: dict, b: dict, counts: Counts) -> list[str]:
    ours = [k for k in b if k.endswith("PARETO.csv")]
    if not ours:
        return [f"ours has no PARETO.csv: {sorted(b)}"]
    names, points = numbers(a["e/pareto/points"])
    _, frontier = numbers(a["e/pareto/frontier"])
    have_names, have = numbers(b[ours[0]])
    counts.add("Pareto points", len(points))
    counts.add("on the frontier", len(frontier))
    problems = []
    lists = [(points, have), (frontier, [p for p in have if p[4] in ("True", "true", "1")])]
    for what, (want, got) in zip(("points", "frontier"), lists):
        want, got = (sorted(p[:4] for p in x) for x in (want, got))
        if len(want) != len(got) or not all(near(x, y) for p, q in zip(want, got) for x, y in zip(p, q)):
            problems.append(f"{what}: upstream {len(want)} {want[:3]}, ours {len(got)} {got[:3]}")
    wanted = [n for n in names if n]
    if [n for n in have_names if n in wanted] != wanted:
        problems.append(f"columns upstream {wanted}, ours {have_names}")
    return problems


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--folders", type=int, default=30)
    p.add_argument("--first", type=int, default=0)
    o = p.parse_args()
    o.ours, o.out = os.path.abspath(o.ours), os.path.abspath(o.out)
    os.makedirs(o.out, exist_ok=True)
    counts, failed, total = Counts(), 0, 0
    for seed in range(o.first, o.first + o.folders):
        draw = random.Random(seed)
        data = [records(draw) for _ in range(draw.randint(1, 2))]
        for i in range(LINES):
            argv = pareto_line(draw) if i == LINES - 1 else plot_line(draw)
            problems = judge(argv, run("upstream", argv, data, o), run("ours", argv, data, o), counts)
            total += 1
            failed += bool(problems)
            if problems:
                print(f"FAIL  folder {seed}: {' '.join(repr(x) if ' ' in x else x for x in argv)}")
                for text in problems[:3]:
                    print(f"      {text:.700}", flush=True)
    print(
        f"{total - failed} of {total} argument lines agree; compared: "
        + ", ".join(f"{n:,} {k}" for k, n in counts.items())
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
