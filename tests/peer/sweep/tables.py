# SPDX-License-Identifier: Apache-2.0
"""The dashboard's two scripts beside `bench compare --tables` and `bench markdown`.

usage: tables.py --ours BINARY --scripts DIR --out DIR [--rounds N] [--first SEED]

DIR has upstream's compare-json-results.py and convert-results-json-to-markdown.py (tests/peer/setup.sh). Both
sides get the same random files. Compared are: the names of what is written; every cell of every CSV
file and of every table of every page, numbers to 1e-9 (pages: as printed); upstream's terminal lines;
benchmark_results.json value for value, the Markdown tables line by line. Ours may have further
columns and lines after upstream's.
"""

import argparse
import csv
import html.parser
import io
import json
import math
import os
import random
import runpy
import shutil
import subprocess
import sys
import traceback

import pandas  # noqa: F401  (part of the warm-up)

from judge import Counts, near, read

# Spreadsheets are not written by ours.
KEYS = ("# of max concurrency.", "qps")
ENV = {"VLLM_COMPARE_DISABLE_EXCEL": "1"}


def script(path: str, argv: list[str], folder: str, out: str, err: str) -> int:
    """Run one of upstream's scripts in a fork."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        for name, fd in ((out, 1), (err, 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), fd)
        os.environ.update(ENV)
        os.chdir(folder)
        sys.argv = [path, *argv]
        runpy.run_path(path, run_name="__main__")
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def ours(argv: list[str], folder: str, out: str, err: str, o) -> int:
    with open(out, "wb") as a, open(err, "wb") as b:
        return subprocess.run(
            [o.ours, "bench", *argv],
            stdout=a,
            stderr=b,
            cwd=folder,
            check=False,
            timeout=120,
            env={**os.environ, **ENV},
        ).returncode


class Tables(html.parser.HTMLParser):
    """Every table of a page as rows of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tables, self.is_cell = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        if tag == "tr" and self.tables:
            self.tables[-1].append([])
        self.is_cell = tag in ("td", "th") or (self.is_cell and tag not in ("tr", "table"))
        if tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.is_cell = False

    def handle_data(self, data):
        if self.is_cell and self.tables and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data.strip()


def same_cell(a: str, b: str) -> bool:
    a, b = ("" if x in ("nan", "NaN", "None", "&nbsp;", "\xa0") else x for x in (a, b))
    if a == b:
        return True
    try:
        return near(float(a), float(b))
    except ValueError:
        return False


def by_key(table: list[list[str]]) -> list[list[str]]:
    """Rows of the same level are in no order upstream."""
    at = [i for i, name in enumerate(table[0]) if name in KEYS] if table else []
    return table[:1] + sorted(table[1:], key=lambda r: [float(r[i]) for i in at if i < len(r)])


def same_table(a: list[list[str]], b: list[list[str]], is_any: bool) -> str:
    """Upstream's columns, found by their names, must have its cells; '' when they do.

    is_any: of several rows with the highest level upstream takes any for the summary's values.
    """
    if not a or not b:
        return "" if a == b else f"{len(a)} and {len(b)} rows"
    a, b = by_key(a), by_key(b)
    if len(a) != len(b):
        return f"rows: upstream {a}, ours {b}"
    try:
        at = [b[0].index(name) for name in a[0]]
    except ValueError:
        return f"columns: upstream {a[0]}, ours {b[0]}"
    for i, (p, q) in enumerate(zip(a[1:], b[1:])):
        q = [q[k] if k < len(q) else "(none)" for k in at]
        for name, x, y in zip(a[0], p, q):
            if not same_cell(x, y) and not (is_any and "@ Both" in name):
                return f"row {i + 1}, {name}: upstream {x!r}, ours {y!r}"
    return ""


def without_index(table: list[list[str]]) -> list[list[str]]:
    """pandas puts the row's number in front."""
    return [row[1:] for row in table] if table and table[0] and table[0][0] == "" else table


def record(draw: random.Random, point: tuple, tp: int, config: float, name: str) -> dict:
    model, data, lens, conc, qps = point
    ttft = conc * draw.uniform(15, 45) * config
    tpot = 8 + conc * draw.uniform(0.4, 1.4) * config
    row = {
        "Test name": name,
        "Model": model,
        "Dataset Name": data,
        "Input Len": lens[0],
        "Output Len": lens[1],
        "TP Size": tp,
        "PP Size": 1,
        "GPU": "1xX",
        "# of req.": 200,
        "qps": qps,
        "# of max concurrency.": conc,
        "Tput (req/s)": conc / 3,
        "Output Tput (tok/s)": 100 * conc / config,
        "Mean TTFT (ms)": ttft / 2,
        "Median TTFT (ms)": ttft / 2.5,
        "P99 TTFT (ms)": ttft,
        "Mean TPOT (ms)": tpot / 2,
        "Median": tpot / 2.2,
        "P99": tpot,
    }
    if draw.random() < 0.05:
        row["P99"] = None
    return row


def files_of(draw: random.Random) -> list[list[dict]]:
    """Some benchmark_results.json that share most points."""
    points = [
        (m, "random", lens, conc, qps)
        for m in draw.sample(["org/a", "b", "c/d/e"], draw.randint(1, 2))
        for lens in draw.sample([(128, 128), (2048, 128), (128, 2048)], draw.randint(1, 2))
        for conc in draw.sample([1, 12, 16, 24, 32, 64, 128], draw.randint(2, 6))
        for qps in draw.sample(["inf", 4], draw.choice([1, 1, 2]))
    ]
    out = []
    for f in range(draw.randint(1, 3)):
        rows = [
            record(draw, p, tp, draw.uniform(0.7, 1.4), f"serving_{i}_tp{tp}")
            for tp in ([1, 2] if draw.random() < 0.3 else [1])
            for i, p in enumerate(points)
            if draw.random() < 0.93
        ]
        draw.shuffle(rows)
        out.append(rows)
    return out


def compare_line(draw: random.Random, n: int) -> list[str]:
    argv = []
    for i in range(n):
        argv += ["-f", f"{'ab c'[i] if i != 2 else 'c/d'}/benchmark_results.json"]
    argv += ["--no-plot"] + ["--debug"] * (draw.random() < 0.2)
    argv += ["-l", draw.choice(["median", "P99"])] * (draw.random() < 0.4)
    if draw.random() < 0.4:
        argv += ["--ttft-max-ms", draw.choice(["500", "1000.5"]), "--tpot-max-ms", "40"]
    if draw.random() < 0.3:
        argv += ["--ttft-slack-pct", "0", "--tpot-slack-pct", draw.choice(["0", "12.5"])]
    argv += ["-x", "qps"] * (draw.random() < 0.1)
    return [*argv, "--csv-out-dir", "csv"]


def prepare(folder: str, files: dict[str, object]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(data if isinstance(data, str) else json.dumps(data))


def everything(folder: str, given: set[str]) -> dict[str, str]:
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(base, name), folder)
            if path not in given:
                found[path] = read(os.path.join(folder, path))
    return found


def judge_compare(a: dict, b: dict, counts: Counts) -> list[str]:
    problems = []
    for name in sorted(a["files"]):
        if name not in b["files"]:
            problems.append(f"ours does not write {name!r}, but {sorted(b['files'])}")
            continue
        texts = a["files"][name], b["files"][name]
        counts.add("files", 1)
        if name.endswith(".csv"):
            x, y = (list(csv.reader(io.StringIO(t))) for t in texts)
            # With another column along the axis upstream takes the concurrency for a configuration.
            x = [r for r in x if r[0] not in KEYS or r is x[0]]
            counts.add("cells of CSV files", sum(map(len, x)))
            if wrong := same_table(x, y, a["is_any"]):
                problems.append(f"{name}: {wrong}")
        elif name.endswith(".html"):
            problems += judge_page(name, *texts, a["is_any"], counts)
        elif name.endswith(".json") and not same_value(*map(json.loads, texts)):
            problems.append(f"{name}: upstream {texts[0]:.300}, ours {texts[1]:.300}")
    lines = a["stdout"].splitlines(), b["stdout"].splitlines()
    for line in lines[0]:
        if line and line not in lines[1] and not line.startswith("Skipped Excel"):
            problems.append(f"terminal: upstream {line!r} is not in {lines[1][:12]}")
    return problems


def judge_page(name: str, a: str, b: str, is_any: bool, counts: Counts) -> list[str]:
    pages = []
    for text in (a, b):
        page = Tables()
        page.feed(text)
        tables = [without_index(t) for t in page.tables]
        pages.append([[r for r in t if r and (r[0] not in KEYS or r is t[0])] for t in tables])
    counts.add("tables of pages", len(pages[0]))
    counts.add("cells of pages", sum(len(r) for t in pages[0] for r in t))
    if len(pages[0]) != len(pages[1]):
        return [f"{name}: {len(pages[0])} tables upstream, {len(pages[1])} ours"]
    wrong = [same_table(x, y, is_any) for x, y in zip(*pages)]
    return [f"{name}, table {i + 1}: {w}" for i, w in enumerate(wrong) if w]


def run_both(kind: str, path: str, argv: list[str], files: dict, o) -> tuple[dict, dict]:
    out = []
    for who in ("upstream", "ours"):
        folder = os.path.join(o.out, who, kind)
        prepare(folder, files)
        texts = [os.path.join(o.out, who + x) for x in (".stdout", ".stderr")]
        if who == "upstream":
            status = script(path, argv, folder, *texts)
        else:
            status = ours([*kind.split(), *argv], folder, *texts, o)
        out.append(
            {
                "status": status,
                "stdout": read(texts[0]),
                "stderr": read(texts[1]),
                "files": everything(folder, set(files)),
            }
        )
    return out[0], out[1]


def serving_file(draw: random.Random, n: int) -> tuple[dict, dict]:
    """A result and its .commands, as the dashboard's runner leaves them."""
    tp, rate = draw.choice([1, 2, 8]), draw.choice(["inf", "4", "2.5"])
    result = {
        "date": "20260101-000000",
        "model_id": draw.choice(["org/a", "b"]),
        "completed": 200 + n,
        "max_concurrency": draw.choice([None, 8, 64]),
        "request_throughput": draw.uniform(1, 90),
        "total_token_throughput": draw.uniform(100, 9000),
        "output_throughput": draw.uniform(9, 4000),
    }
    for m in ("ttft", "tpot", "itl"):
        for s in ("mean", "median", "p99", "std"):
            if m != "itl" or draw.random() < 0.9:
                result[f"{s}_{m}_ms"] = draw.choice([draw.uniform(0, 900), 12.0, 3, 1e-7, 123456.75])
    server = f"vllm serve m --tensor-parallel-size {tp} --dtype={draw.choice(['bfloat16', 'auto'])}"
    if draw.random() < 0.3:
        server += " --pipeline-parallel-size=2 --enforce-eager"
    client = (
        "vllm bench serve --save-result --dataset-name random --random-input-len 128 --random-output-len "
        f"{draw.choice(['128', '2048'])} --metadata tensor_parallel_size={tp} x --request-rate {rate} m"
    )
    gpus = "\n".join([draw.choice(["H100", "Xeon 6"])] * tp)
    return result, {"server_command": server, "client_command": client, "gpu_type": gpus}


def markdown_files(draw: random.Random) -> dict:
    files = {}
    for n in range(draw.randint(1, 6)):
        result, commands = serving_file(draw, n)
        name = f"results/serving_{draw.choice('xyz')}{n}_qps_{n}_concurrency_{n}"
        files[name + ".json"] = result
        if draw.random() < 0.9:
            files[name + ".commands"] = commands
    for n in range(draw.randint(0, 3)):
        files[f"results/latency_{n}.json"] = {
            "avg_latency": draw.uniform(0.1, 9),
            "latencies": [1.0],
            "percentiles": {str(p): draw.uniform(0.1, 9) for p in (10, 25, 50, 75, 90, 99)},
        }
        files[f"results/latency_{n}.commands"] = {"latency_command": "x y", "gpu_type": "A100"}
    for n in range(draw.randint(0, 3)):
        files[f"results/throughput_{n}.json"] = {
            "elapsed_time": draw.uniform(1, 99),
            "num_requests": 200,
            "total_num_tokens": 9999 + n,
            "requests_per_second": draw.uniform(1, 9),
            "tokens_per_second": draw.uniform(1, 999),
        }
        files[f"results/throughput_{n}.commands"] = {
            "throughput_command": "x y",
            "gpu_type": "A100\nA100",
        }
    if draw.random() < 0.4:
        files["results/other.json"] = {"a": 1}
    return files


def same_value(a, b) -> bool:
    """pandas writes ten decimals."""
    if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        return near(a, float(b)) or (math.isnan(a) and b != b) or abs(a - b) < 1e-9
    if isinstance(a, dict) and isinstance(b, dict):
        return all(k in b and same_value(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_value, a, b))
    # What pandas has no value for is NaN there.
    return a == b or (a != a and b is None)


def judge_markdown(a: dict, b: dict, counts: Counts) -> list[str]:
    name = "results/benchmark_results.json"
    if name not in b["files"]:
        return [f"ours writes {sorted(b['files'])}; {b['stderr'][-300:]}"]
    want, have = (json.loads(x["files"][name]) for x in (a, b))
    counts.add("rows of benchmark_results.json", len(want))
    problems = []
    for i, row in enumerate(want):
        if i >= len(have) or not same_value(row, have[i]) or list(row) != list(have[i])[: len(row)]:
            problems.append(f"row {i}: upstream {row}, ours {have[i] if i < len(have) else None}")
            break
    if len(have) > len(want):
        problems.append(f"{len(have)} rows, upstream {len(want)}")
    lines = b["files"]["results/benchmark_results.md"].splitlines()
    tables = [x for x in a["files"]["results/benchmark_results.md"].splitlines() if x.startswith("|")]
    counts.add("lines of Markdown tables", len(tables))
    # The last table is about the machine; upstream knows less of it, so its columns are narrower.
    machine = tables.index(next(x for x in tables if x.startswith("|") and "Platform Info" in x))
    missing = [x for x in tables[:machine] if x not in lines]
    words = [x.replace(" ", "") for x in lines]
    missing += [x for x in tables[machine + 2 :] if x.replace(" ", "") not in words]
    if missing:
        problems += [
            f"Markdown upstream {missing[0]}",
            f"  ours {[x for x in lines if x[:12] == missing[0][:12]]}",
        ]
    said = [x for x in a["stdout"].splitlines() if x.startswith(("Skipping", "[Errno"))]
    for x in said:
        # Of a file that is not there ours says the same in its own words.
        x = x.split("'")[1] if x.startswith("[Errno") else x
        if x not in b["stdout"] + b["stderr"]:
            problems.append(f"terminal: upstream {x!r}, ours {b['stdout'][-300:]!r}")
    return problems


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "scripts", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--first", type=int, default=0)
    o = p.parse_args()
    o.ours, o.out, o.scripts = map(os.path.abspath, (o.ours, o.out, o.scripts))
    # The template of the report is looked for next to the working folder.
    template = read(os.path.join(o.scripts, "performance-benchmarks-descriptions.md"))
    beside = os.path.join(o.out, "upstream", ".buildkite", "performance-benchmarks")
    os.makedirs(beside, exist_ok=True)
    os.makedirs(os.path.join(o.out, "ours"), exist_ok=True)
    with open(os.path.join(beside, "performance-benchmarks-descriptions.md"), "w", encoding="utf-8") as f:
        f.write(template)
    counts, failed = Counts(), 0
    for seed in range(o.first, o.first + o.rounds):
        draw = random.Random(seed)
        data = files_of(draw)
        files = {
            f"{'ab c'[i] if i != 2 else 'c/d'}/benchmark_results.json": rows
            for i, rows in enumerate(data)
        }
        argv = compare_line(draw, len(data))
        a, b = run_both("compare", os.path.join(o.scripts, "compare-json-results.py"), argv, files, o)
        rates = {row["qps"] for rows in data for row in rows}
        a["is_any"] = len(rates) > 1 or "qps" in argv
        rounds = [("compare " + " ".join(argv), a, b, judge_compare)]
        files = markdown_files(draw)
        a, b = run_both(
            "markdown",
            os.path.join(o.scripts, "convert-results-json-to-markdown.py"),
            ["-r", "results"],
            files,
            o,
        )
        rounds.append(("markdown", a, b, judge_markdown))
        for name, a, b, judge in rounds:
            if a["status"]:
                problems = (
                    [] if b["status"] else [f"upstream ends with {a['status']}: {a['stderr'][-200:]}"]
                )
            elif b["status"]:
                problems = [f"ours ends with {b['status']}: {b['stderr'][-400:]}"]
            else:
                problems = judge(a, b, counts)
            failed += bool(problems)
            for i, text in enumerate(problems[:4]):
                print(("" if i else f"FAIL  round {seed}: {name}\n") + f"      {text:.600}", flush=True)
    print(
        f"{2 * o.rounds - failed} of {2 * o.rounds} rounds agree; compared: "
        + ", ".join(f"{n:,} {k}" for k, n in counts.items())
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
