# SPDX-License-Identifier: Apache-2.0
"""Run the real `vllm bench sweep`, and old releases of it, in forked children.

Importing the package takes most of a minute, so it is done once; each run is a
fork that calls the package's own entry point with its own argument list, in its
own folder. Nothing of the package is changed.

The SLA search is no longer in upstream's present release. What an older one
(tests/peer/setup.sh) has under vllm/benchmarks/sweep is loaded as a package of
its own name beside the present one, whose helpers it imports.
"""

import importlib
import importlib.util
import os
import signal
import sys
import traceback

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot  # noqa: F401  (part of the warm-up)
import pandas  # noqa: F401
import scipy.interpolate  # noqa: F401
import seaborn  # noqa: F401
import vllm.benchmarks.sweep.cli  # noqa: F401
import vllm.entrypoints.cli.benchmark.main  # noqa: F401
import vllm.entrypoints.cli.collect_env  # noqa: F401
import vllm.entrypoints.cli.launch  # noqa: F401
import vllm.entrypoints.cli.main as cli
import vllm.entrypoints.cli.openai  # noqa: F401
import vllm.entrypoints.cli.run_batch  # noqa: F401
import vllm.entrypoints.cli.serve  # noqa: F401
import vllm.entrypoints.cli.snapshot  # noqa: F401
from vllm.utils.argparse_utils import FlexibleArgumentParser

RUN_TIMEOUT_S = 300


def old_release(folder: str, name: str):
    """The package `vllm.benchmarks.sweep` of another release, as package `name`."""
    path = os.path.join(folder, "vllm", "benchmarks", "sweep")
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(path, "__init__.py"), submodule_search_locations=[path])
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return importlib.import_module(f"{name}.serve_sla")


def run_old(module, argv: list[str]) -> None:
    parser = FlexibleArgumentParser(description=module.SweepServeSLAArgs.parser_help)
    module.SweepServeSLAArgs.add_cli_args(parser)
    module.main(parser.parse_args(argv))


def run_present(argv: list[str]) -> None:
    sys.argv = ["vllm", "bench", "sweep", *argv]
    cli.main()


def run(argv: list[str], *, folder: str, stdout: str, stderr: str, env: dict[str, str],
        old=None, listen=None) -> int:
    """Fork, run the tool in `folder`, return its exit status. listen is called first, in the child."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    signal.alarm(RUN_TIMEOUT_S)
    try:
        for path, fd in ((stdout, 1), (stderr, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), fd)
        os.environ.update(env)
        os.chdir(folder)
        if listen:
            listen()
        if old:
            run_old(old, argv)
        else:
            run_present(argv)
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
