# SPDX-License-Identifier: Apache-2.0
"""profllm bench VERB, as a process of the program."""
import json
import os
import re
import signal
import subprocess
import tempfile
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import Document, Failed, Interrupted, Refused
from ._native import program
from ._progress import Meter, Progress
from ._run import Path, plain, tell

# How each verb writes one result: the option, or "save" and that option for a folder and a file's name;
# and whether it has --progress.
VERBS = {
    "serve": ("save-result", True), "multi-turn": ("save-result", True),
    "score": ("save-result", False), "structured-output": ("save-results", False),
    "throughput": ("output-json", True), "prioritization": ("output-json", True),
    "latency": ("output-json", True), "startup": ("output-json", True),
    "mm-processor": ("output-json", True), "prefix-caching": ("output-json", True),
    "long-document-qa": ("output-json", True), "hash": ("output-json", False),
    "prefix-block-hash": ("output-json", False), "ab": ("output-json", False),
}
# Options that choose where results go, and those that make several of them.
PLACES = ("save-result", "save-results", "append-result", "result-dir", "result-filename", "output-json")
SEVERAL = ("sweep-max-concurrency", "sweep-request-rate")
# Options that are written once for each value; other lists are values after one option.
REPEATED = ("base-url", "serve-cmd", "fail-if", "metric", "file")

Operand = Union[Mapping[str, Any], Path]


def words_of(options: Mapping[str, Any]) -> List[str]:
    """{"num_prompts": 5, "ignore_eos": True} as --num-prompts=5 --ignore-eos."""
    words: List[str] = []
    for key, given in options.items():
        name, value = key.replace("_", "-"), plain(given)
        if value is None or value is False:
            continue
        if value is True:
            words.append("--" + name)
        elif isinstance(value, list) and name not in REPEATED:
            words += ["--" + name] + [as_word(item) for item in value]
        else:
            words += ["--%s=%s" % (name, as_word(v)) for v in (value if isinstance(value, list) else [value])]
    return words


def as_word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class Talk:
    """What the program writes on stderr: progress, warnings, and messages, which are kept."""

    def __init__(self, meter: Meter, warn: Optional[Callable[[str], None]]) -> None:
        self.meter, self.warn = meter, warn
        self.messages: List[str] = []
        self.rest = b""

    def feed(self, data: bytes) -> None:
        *pieces, self.rest = re.split(rb"[\r\n]", self.rest + data)
        for piece in pieces:
            self.take(piece.decode(errors="replace"))

    def take(self, piece: str) -> None:
        # A bar ends by erasing the rest of its line; what follows that is a message.
        bar, erased, message = piece.rpartition("\x1b[K")
        found = re.match(r"(.*?): .*?(\d+)/(\d+) \[", bar)
        if found:
            self.meter.show(found[1], int(found[2]), int(found[3]))
        elif bar:
            self.meter.show(bar.partition(" [")[0], 0, 0)
        if message.startswith("WARNING: "):
            self.meter.clear()
            tell(self.warn, message[len("WARNING: "):])
        elif message:
            self.messages.append(re.sub(r"^profllm [a-z -]+: ", "", message))


def call(words: List[str], talk: Talk) -> int:
    """Runs the program and returns its exit status. An exception ends it as Ctrl-C would, and is raised."""
    # A session of its own: a terminal's Ctrl-C comes here alone and is passed on once.
    process = subprocess.Popen([program()] + words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True)
    assert process.stderr is not None
    failure: Optional[BaseException] = None
    while True:
        try:
            data = os.read(process.stderr.fileno(), 65536)
            if not data:
                break
            if not failure:
                talk.feed(data)
        except BaseException as why:
            if not failure:
                process.send_signal(signal.SIGINT)
            failure = failure or why
    process.stderr.close()
    status = process.wait()
    talk.meter.clear()
    if failure:
        raise failure
    return status


def stamp(path: str) -> Optional[Tuple[int, int]]:
    """What differs once the file is written again."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return (found.st_ino, found.st_mtime_ns)


def written(path: str, before: Optional[Tuple[int, int]]) -> Optional[Document]:
    """The file's JSON, unless it is as it was before or empty."""
    if stamp(path) == before or os.path.getsize(path) == 0:
        return None
    with open(path, encoding="utf-8") as file:
        document: Document = json.load(file)
    return document


def finish(words: List[str], path: str, talk: Talk) -> Document:
    """Runs the program, which writes JSON to path, and returns that."""
    before = stamp(path)
    try:
        status = call(words, talk)
    except KeyboardInterrupt:
        raise Interrupted(written(path, before)) from None
    document = written(path, before)
    command = "profllm " + " ".join(words[:2])
    reason = "\n".join(talk.messages) or "%s ended with status %d" % (command, status)
    if status == 2:
        raise Refused(reason, document)
    if status == 130:
        raise Interrupted(document)
    if status != 0:
        raise Failed(reason, document, status)
    if document is None:
        raise Failed("%s wrote no result" % command, None, status)
    return document


def check(verb: str, options: Iterable[str]) -> Tuple[str, bool]:
    names = [name.replace("_", "-") for name in options]
    if verb not in VERBS:
        raise Refused("bench %s: expected one of %s; run others with subprocess and profllm.program()" %
                      (verb, ", ".join(VERBS)))
    for name in names:
        if name in PLACES:
            raise Refused("bench %s: --%s chooses where the result is written; use output=PATH" %
                          (verb, name))
        if name in SEVERAL:
            raise Refused("bench %s: --%s makes several results, and bench returns one; call it once for "
                          "each value" % (verb, name))
    return VERBS[verb]


def bench(verb: str, *operands: Path, output: Optional[Path] = None, progress: Progress = True,
          warn: Optional[Callable[[str], None]] = None, **options: Any) -> Document:
    """Runs `profllm bench VERB` and returns its result, a dict with the keys of the file it writes.

    operands: files, where the verb takes such. options: those of `profllm bench VERB --help`, with _ for -:
        num_prompts=100; True for a flag; None and False leave it out; a list for several values; a dict
        where JSON is expected.
    output: the result is written to this path, too; figures that are drawn lie next to it.
    progress, warn: as in run.

    Raises Refused for a wrong option; Failed when the measurement failed or a condition of fail_if was met;
    Interrupted.
    """
    saving, has_progress = check(verb, options)
    with tempfile.TemporaryDirectory(prefix="profllm-") as folder:
        path = os.path.abspath(os.fspath(output)) if output is not None else folder + "/result.json"
        words = ["bench", verb] + [os.fspath(operand) for operand in operands] + words_of(options)
        if saving == "output-json":
            words.append("--output-json=" + path)
        else:
            words += ["--" + saving, "--result-dir=" + os.path.dirname(path),
                      "--result-filename=" + os.path.basename(path)]
        if has_progress:
            words.append("--progress=" + ("bar" if progress else "none"))
        return finish(words, path, Talk(Meter(progress), warn))


def compare(baseline: Union[Operand, Sequence[Operand]], *others: Union[Operand, Sequence[Operand]],
            warn: Optional[Callable[[str], None]] = None, **options: Any) -> Document:
    """Compares results as `profllm bench compare` does and returns what it gives as JSON.

    Each side is a dict of run or bench, the path of a file or a folder, or a list of dicts and paths of
    files. options: as in bench, for example metrics="mean_tpot_ms", fail_if="p99_ttft_ms>+5%".
    """
    with tempfile.TemporaryDirectory(prefix="profllm-") as folder:
        sides = [side_path(side, os.path.join(folder, "side%d" % (n + 1) if n else "baseline"))
                 for n, side in enumerate((baseline,) + others)]
        path = folder + "/compared.json"
        words = ["bench", "compare"] + sides + words_of(options) + ["--format=json", "--output=" + path]
        return finish(words, path, Talk(Meter(False), warn))


def side_path(side: Union[Operand, Sequence[Operand]], folder: str) -> str:
    """The path of a side, which is written into the folder unless it has one."""
    if isinstance(side, (str, os.PathLike)):
        return os.fspath(side)
    os.mkdir(folder)
    for n, one in enumerate([side] if isinstance(side, Mapping) else side):
        path = os.path.join(folder, "%d.json" % (n + 1))
        if isinstance(one, Mapping):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(plain(one), file)
        else:
            os.symlink(os.path.abspath(os.fspath(one)), path)
    return folder
