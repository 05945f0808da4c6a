# SPDX-License-Identifier: Apache-2.0
"""The package against the simulator: `python -m unittest discover python/tests`, or pytest.

Needs the package: an installed wheel, or PYTHONPATH=python/src with PROFLLM_LIB and PROFLLM_PROGRAM.
"""
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import warnings
from pathlib import Path
from unittest import mock

import profllm
from profllm import _bench, _native, _progress

LOAD = {"model": "sim", "tokenizer": "sim", "random_input_len": 8, "temperature": 0, "ignore_eos": True}


def experiment(server=None, **benchmark):
    """A configuration whose server is the simulator."""
    return {
        "name": "package",
        "server": {"command": "sim", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-80gb",
                   "max_model_len": 8192, "max_num_seqs": 64, **(server or {})},
        "benchmark": {"dataset_name": "random", "tokenizer": "sim", "random_input_len": 64,
                      "random_output_len": 8, "num_prompts": 6, "request_rate": float("inf"),
                      "ignore_eos": True, **benchmark},
    }


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def sim(self, *words):
        """The URL of a simulator that ends with the test."""
        port = self.folder / ("port%d" % time.monotonic_ns())
        process = subprocess.Popen([profllm.program(), "sim", "--port", "0", "--port-file", port, *words],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        deadline = time.monotonic() + 30
        while not (port.exists() and port.read_text().strip()):
            self.assertIsNone(process.poll(), "the simulator ended")
            self.assertLess(time.monotonic(), deadline, "the simulator did not start")
            time.sleep(0.01)
        return "http://127.0.0.1:" + port.read_text().strip()


def interrupt_when(reached):
    """Sends this process a Ctrl-C once the event is set, from a thread, as a terminal would."""
    def work():
        reached.wait(60)
        time.sleep(0.05)  # the main thread waits in the call again
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


class Run(Case):
    def test_what_is_no_configuration(self):
        with self.assertRaisesRegex(TypeError, "config: expected a dict or the path of a file, got int"):
            profllm.run(3)
        with self.assertRaisesRegex(TypeError, "set: expected a dict, such as .* got list"):
            profllm.run({}, set=["benchmark.num_prompts=20"])
        with self.assertRaises(profllm.Refused) as caught:
            profllm.run(self.folder / "missing.yaml")
        self.assertRegex(str(caught.exception), r"^config: cannot open .*missing.yaml: No such file")
        with self.assertRaises(profllm.Refused) as caught:
            profllm.run({"nonsense": 1})
        self.assertEqual(str(caught.exception), "configuration:1:2: nonsense: unknown key")

    def test_again_and_in_threads(self):
        status = []

        def work():
            document = profllm.run(experiment(), progress=False, warn=lambda text: None)
            status.append(document["status"])

        for count in (3, 1, 2):
            threads = [threading.Thread(target=work) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(status, ["completed"] * 6)

    def test_a_dict(self):
        document = profllm.run(experiment(), output=self.folder / "results.json", progress=False)
        self.assertEqual(document["status"], "completed")
        self.assertEqual(document["results"]["completed_requests"], 6)
        self.assertEqual(document["results"]["total_output_tokens"], 48)
        self.assertIn(document["trust"]["verdict"], ("VALID", "DEGRADED", "INVALID"))
        self.assertEqual(json.loads((self.folder / "results.json").read_text()), document)

    def test_set_wins_over_the_file(self):
        (self.folder / "a.yaml").write_text(json.dumps(experiment(request_rate="inf")))
        document = profllm.run(self.folder / "a.yaml", progress=False, set={
            "benchmark.num_prompts": 3, "benchmark.request_rate": float("inf"), "name": "by: set"})
        self.assertEqual(document["results"]["completed_requests"], 3)
        self.assertEqual(document["config"]["name"], "by: set")

    def test_refused_with_a_line_for_each_mistake(self):
        with self.assertRaises(profllm.Refused) as caught:
            profllm.run(experiment(num_promts=1, random_input_len="long"), progress=False)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(len(caught.exception.lines), 2, caught.exception.lines)
        self.assertIn("benchmark.num_promts: unknown key; did you mean num_prompts?", str(caught.exception))
        self.assertIn("random_input_len", str(caught.exception))

    def test_refused_with_the_line_of_the_file(self):
        path = self.folder / "a.yaml"
        path.write_text("name: a\nserver:\n  command: sim\n  model: m\nbenchmark:\n  num_promts: 1\n")
        with self.assertRaisesRegex(profllm.Refused, r"a\.yaml:6:\d+: benchmark\.num_promts: unknown key"):
            profllm.run(path, progress=False)

    def test_a_server_that_does_not_start(self):
        with self.assertRaises(profllm.Failed) as caught:
            profllm.run(experiment({"fail_start": "oom"}), progress=False)
        self.assertEqual(caught.exception.document["status"], "failed")
        self.assertEqual(caught.exception.document["error"]["category"], "out of memory")

    def test_requests_that_fail_leave_a_document(self):
        document = profllm.run(experiment({"fault": "status=503:0.5"}, num_prompts=40), progress=False)
        self.assertEqual(document["status"], "partial")
        self.assertGreater(document["results"]["failed_requests"], 0)

    def test_progress_and_warnings_come_to_the_caller(self):
        seen, warned, here = [], [], threading.current_thread()

        def progress(what, done, total):
            self.assertIs(threading.current_thread(), here)
            seen.append((what, done, total))

        profllm.run(experiment(random_input_len=8, num_prompts=200), progress=progress, warn=warned.append)
        with self.assertWarns(UserWarning) as caught:
            profllm.run(experiment(random_input_len=8, num_prompts=200), progress=False)
        self.assertEqual(caught.filename, __file__)
        self.assertIn(("Benchmark", 200, 200), seen)
        self.assertTrue([text for text in warned if "more tokens than requested" in text], warned)

    def test_an_exception_of_progress_stops_the_run(self):
        began = time.monotonic()

        def progress(what, done, total):
            if what == "Benchmark" and done:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            profllm.run(experiment(request_rate=5, num_prompts=5000), progress=progress)
        self.assertLess(time.monotonic() - began, 100)

    def test_ctrl_c_gives_the_part_that_was_measured(self):
        reached = threading.Event()
        thread = interrupt_when(reached)
        self.addCleanup(thread.join)
        self.addCleanup(reached.set)
        with self.assertRaises(profllm.Interrupted) as caught:
            profllm.run(experiment(request_rate=20, num_prompts=5000), progress=lambda what, done, total:
                        reached.set() if what == "Benchmark" and done > 3 else None)
        self.assertIsInstance(caught.exception, KeyboardInterrupt)
        document = caught.exception.document
        self.assertEqual(document["status"], "partial")
        self.assertTrue(3 < document["results"]["completed_requests"] < 5000)

    def test_two_threads(self):
        documents = {}

        def work(n):
            documents[n] = profllm.run(experiment(num_prompts=n), progress=False)

        threads = [threading.Thread(target=work, args=(n,)) for n in (4, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({n: d["results"]["completed_requests"] for n, d in documents.items()}, {4: 4, 5: 5})


class Bench(Case):
    def serve(self, url, **options):
        return profllm.bench("serve", base_url=url, progress=False, **{
            **LOAD, "random_output_len": 4, "num_prompts": 5, **options})

    def test_serve_is_what_the_command_saves(self):
        url = self.sim("--ttft-ms", "50", "--itl-ms", "10")
        result = self.serve(url, percentile_metrics="ttft,tpot,itl,e2el", goodput=["ttft:1000", "e2el:5000"])
        subprocess.run([
            profllm.program(), "bench", "serve", "--base-url", url, "--model", "sim", "--tokenizer", "sim",
            "--random-input-len", "8", "--random-output-len", "4", "--num-prompts", "5", "--temperature", "0",
            "--ignore-eos", "--percentile-metrics", "ttft,tpot,itl,e2el", "--goodput", "ttft:1000",
            "e2el:5000", "--save-result", "--result-filename", self.folder / "cli.json"], check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        saved = json.loads((self.folder / "cli.json").read_text())
        self.assertEqual(list(result), list(saved))
        self.assertEqual(list(result["profllm"]), list(saved["profllm"]))
        self.assertEqual(result["total_input_tokens"], saved["total_input_tokens"])
        self.assertEqual(result["completed"], 5)
        self.assertGreaterEqual(result["median_ttft_ms"], 50)
        self.assertGreaterEqual(result["median_e2el_ms"], 79)  # a late first token does not shorten it
        self.assertGreater(result["median_tpot_ms"], 0)

    def test_output_is_kept_and_a_failure_does_not_touch_it(self):
        path = self.folder / "kept.json"
        result = self.serve(self.sim(), output=path, save_detailed=True)
        self.assertEqual(json.loads(path.read_text()), result)
        self.assertEqual(len(result["ttfts"]), 5)
        with self.assertRaisesRegex(profllm.Failed, "Connection refused") as caught:
            self.serve("http://127.0.0.1:1", output=path)
        self.assertEqual(caught.exception.exit_status, 1)
        self.assertIsNone(caught.exception.document)
        self.assertEqual(json.loads(path.read_text()), result)

    def test_refused(self):
        for verb, options, sentence in [
            ("serve", {"num_promts": 5}, "unknown option --num-promts; did you mean --num-prompts"),
            ("serve", {"num_prompts": "many"}, "--num-prompts"),
            ("serve", {"result_dir": "x"}, "--result-dir chooses where .* use output=PATH"),
            ("serve", {"sweep_request_rate": "1,2"}, "makes several results"),
            ("sweep", {}, r"bench sweep: expected one of serve, .* profllm\.program\(\)"),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(profllm.Refused, sentence):
                profllm.bench(verb, progress=False, **options)

    def test_a_gate_that_fails_has_the_result(self):
        with self.assertRaisesRegex(profllm.Failed, r"p99_ttft_ms is .* \(limit 1 ms\)") as caught:
            self.serve(self.sim("--ttft-ms", "50"), fail_if=["p99_ttft_ms>1", "failed>0"])
        self.assertEqual(caught.exception.exit_status, 3)
        self.assertEqual(caught.exception.document["completed"], 5)

    def test_progress_and_warnings(self):
        seen, warned = [], []
        profllm.bench("serve", base_url=self.sim(), progress=lambda *all: seen.append(all),
                      warn=warned.append, **{**LOAD, "random_output_len": 4, "num_prompts": 20},
                      request_rate=20)
        self.assertIn(("Benchmark", 20, 20), seen)
        self.assertTrue(any(0 < done < 20 for _, done, _ in seen), seen)
        self.assertFalse([text for text in warned if text.startswith("WARNING") or "\x1b" in text])
        with self.assertWarns(UserWarning) as caught:
            self.serve(self.sim(), num_prompts=200)
        self.assertEqual(caught.filename, __file__)

    def test_ctrl_c(self):
        reached = threading.Event()
        thread = interrupt_when(reached)
        self.addCleanup(thread.join)
        self.addCleanup(reached.set)
        with self.assertRaises(profllm.Interrupted) as caught:
            profllm.bench("serve", base_url=self.sim("--ttft-ms", "5"), request_rate=20, num_prompts=5000,
                          random_output_len=4, **LOAD, progress=lambda what, done, total:
                          reached.set() if what == "Benchmark" and done > 3 else None)
        self.assertTrue(3 < caught.exception.document["completed"] < 5000)

    def test_every_verb_saves_as_the_table_says(self):
        for verb, (saving, has_progress) in _bench.VERBS.items():
            with self.subTest(verb):
                said = subprocess.run([profllm.program(), "bench", verb, "--help=all"], check=True,
                                      stdout=subprocess.PIPE).stdout.decode()
                if verb != "multi-turn":  # its help refers to bench serve
                    self.assertIn("--" + saving, said)
                    self.assertEqual("--progress" in said, has_progress)

    def test_words(self):
        self.assertEqual(
            _bench.words_of({"num_prompts": 5, "ignore_eos": True, "save": False, "seed": None,
                             "request_rate": float("inf"), "extra_body": {"a": [1]},
                             "goodput": ["a:1", "b:2"], "base_url": ["u", "v"], "record": Path("x")}),
            ["--num-prompts=5", "--ignore-eos", "--request-rate=inf", '--extra-body={"a": [1]}',
             "--goodput", "a:1", "b:2", "--base-url=u", "--base-url=v", "--record=x"])


class Compare(Case):
    def results(self, *sim):
        """Three loads: one pair of results is too little for a verdict."""
        url = self.sim("--ttft-ms", "5", *sim)
        return [profllm.bench("serve", base_url=url, max_concurrency=n, num_prompts=8, random_output_len=8,
                              progress=False, **LOAD) for n in (2, 4, 8)]

    def judge(self, a, b):
        found = profllm.compare(a, b, metrics="mean_tpot_ms")["comparisons"][0]["metrics"]
        self.assertEqual([row["metric"] for row in found], ["mean_tpot_ms"])
        return found[0]

    def test_a_slower_server_and_one_that_is_the_same(self):
        base = self.results("--itl-ms", "20")
        worse = self.judge(base, self.results("--itl-ms", "40"))
        self.assertEqual(worse["verdict"], "worse", worse["sentence"])
        self.assertTrue(0.8 < worse["effect"] < 1.2, worse["sentence"])
        same = self.judge(base, self.results("--itl-ms", "20"))
        self.assertFalse(same["is_beyond_effect_min"], same["sentence"])
        self.assertTrue(-0.1 < same["effect"] < 0.1, same["sentence"])

    def test_files_and_a_gate(self):
        url, paths = self.sim(), []
        for n in (1, 2):
            paths.append(self.folder / ("%d.json" % n))
            profllm.bench("serve", base_url=url, num_prompts=5, random_output_len=4, output=paths[-1],
                          progress=False, **LOAD)
        self.assertEqual(len(profllm.compare(paths[0], str(paths[1]))["sides"]), 2)
        with self.assertRaises(profllm.Failed) as caught:
            profllm.compare([paths[0]], json.loads(paths[1].read_text()), fail_if="mean_ttft_ms>0.001")
        self.assertEqual(caught.exception.exit_status, 3)
        self.assertEqual(len(caught.exception.document["comparisons"]), 1)

    def test_a_side_against_itself_is_refused(self):
        result = profllm.bench("serve", base_url=self.sim(), num_prompts=5, random_output_len=4,
                               progress=False, **LOAD)
        with self.assertRaisesRegex(profllm.Refused, "same"):
            profllm.compare(result, result)


class Frame(unittest.TestCase):
    def test_without_pandas(self):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(ImportError, "profllm.frame needs pandas; install it"):
                profllm.frame({"a": 1})

    def test_rows(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        suite = {"plan": {}, "experiments": [{"results": {"a": 2}}, {}]}
        rows = profllm.frame([{"results": {"a": 1}}, suite])
        self.assertIsInstance(rows, pandas.DataFrame)
        self.assertEqual(rows["results.a"].fillna(0).tolist(), [1, 2, 0])
        self.assertEqual(len(profllm.frame({"a": 1})), 1)


class Tty(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def shown(self, stderr):
        with contextlib.redirect_stderr(stderr):
            meter = _progress.Meter(True)
            meter.say("Starting the server")
            for done in range(101):
                meter.show("Benchmark", done, 100)
            meter.clear()
        return stderr.getvalue()

    def test_a_terminal_has_one_line(self):
        text = self.shown(Tty())
        self.assertTrue(text.startswith("\rStarting the server\x1b[K\rBenchmark 0/100 (0 %)\x1b[K"), text)
        self.assertTrue(text.endswith("\rBenchmark 100/100 (100 %)\x1b[K\r\x1b[K"), text)
        self.assertNotIn("\n", text)
        self.assertLess(text.count("Benchmark"), 50)

    def test_a_file_has_nothing(self):
        self.assertEqual(self.shown(io.StringIO()), "")

    def test_a_notebook_has_one_output(self):
        shown = []

        class Handle:
            def update(self, bundle, raw):
                shown.append(("update", bundle["text/plain"]))

        def display(bundle, raw, display_id):
            shown.append(("display", bundle["text/plain"]))
            return Handle()

        shell = types.SimpleNamespace(kernel=object())
        ipython = types.SimpleNamespace(get_ipython=lambda: shell)
        with mock.patch.dict(sys.modules, {
                "IPython": ipython, "IPython.display": types.SimpleNamespace(display=display)}):
            self.assertEqual(self.shown(Tty()), "")
        self.assertEqual(shown[0], ("display", "Starting the server"))
        self.assertEqual(shown[-1], ("update", "Benchmark 100/100 (100 %)"))
        self.assertEqual([kind for kind, _ in shown].count("display"), 1)

    def test_what_the_program_writes(self):
        seen, warned = [], []
        talk = _bench.Talk(_progress.Meter(lambda *all: seen.append(all)), warned.append)
        bar = "Prüfung: 30%|█▍| 3/10 [00:01]\x1b[K\n".encode()
        for part in (b"\rBenchmark:   2%|##  | 8/500 [00:00<00:13, 37/s]\x1b[K\rPro",
                     b"mpts: 1/2 [00:01]\x1b[K", b"\r\x1b[KWARNING: look\nStarting [00:03]\x1b[K\n",
                     bar[:3], bar[3:], b"profllm bench serve: no: 1/2\n"):
            talk.feed(part)
        self.assertEqual(seen, [("Benchmark", 8, 500), ("Prompts", 1, 2), ("Starting", 0, 0),
                                ("Prüfung", 3, 10)])
        self.assertEqual(warned, ["look"])
        self.assertEqual(talk.messages, ["no: 1/2"])


class Native(unittest.TestCase):
    def test_version_is_the_programs(self):
        said = subprocess.run([profllm.program(), "--version"], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(said.decode().split()[1], profllm.version())

    def test_no_library(self):
        with mock.patch.dict(os.environ, {"PROFLLM_LIB": "/nowhere/libprofllm.so.1"}):
            with self.assertRaisesRegex(OSError, "/nowhere/libprofllm.so.1.*; install the wheel"):
                profllm.run(experiment(), progress=False)

    def test_no_program(self):
        with mock.patch.dict(os.environ, {"PROFLLM_LIB": str(Path("/nowhere") / "x.so"), "PATH": "/nowhere"}):
            os.environ.pop("PROFLLM_PROGRAM", None)
            with self.assertRaisesRegex(OSError, "neither next to the library nor in PATH; install"):
                profllm.bench("serve", model="sim")

    def test_another_interface(self):
        other = mock.Mock()
        other.profllm_api.return_value = 2
        with mock.patch("ctypes.CDLL", return_value=other):
            with self.assertRaisesRegex(OSError, "x.so has interface 2, and this package needs 1"):
                _native.load("x.so")

    def test_versions_as_pep_440_spells_them(self):
        folder = Path(__file__).resolve().parent.parent
        if not (folder / "backend.py").exists():
            self.skipTest("the tests are not in a checkout, which has the wheel's builder")
        sys.path.insert(0, str(folder))
        self.addCleanup(sys.path.pop, 0)
        from backend import version_of

        for text, expected in [("v1.2.3", "1.2.3"), ("1.2", "1.2"), ("v1.2-3-gabc1", "1.2.post3+gabc1"),
                               ("v1.2-dirty", "1.2+dirty"), ("491e1d0e", "0+491e1d0e"),
                               ("491e1d0e-dirty", "0+491e1d0e.dirty"), ("unknown", "0+unknown")]:
            self.assertEqual(version_of(text), expected)
            self.assertTrue(re.fullmatch(r"[0-9.]+(\.post\d+)?(\+[a-z0-9.]+)?", version_of(text)))


if __name__ == "__main__":
    unittest.main()
