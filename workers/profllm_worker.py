# SPDX-License-Identifier: Apache-2.0
"""The talk between ProfLLM and a Python program that drives an inference engine.

docs/guide/adapters.md is the protocol: frames of four bytes of length (big-endian) and one JSON
object over the socket whose descriptor is named by PROFLLM_WORKER_FD. stdout and stderr are the
log. An adapter is a class with a method for each question; serve() asks it and turns what it
raises into a category and one sentence. Only the standard library is used here.
"""

import errno
import json
import os
import re
import socket
import stat
import struct
import sys
import time
import traceback

PROTOCOL = 1
FRAME_BYTES_MAX = 256 << 20
SENTENCE_MAX = 600
PROGRESS_NS = 100_000_000

MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|MemoryError|[Nn]o available memory|Free memory on device|"
    r"available KV cache memory|desired \w+ memory utilization|Cannot allocate memory|"
    r"not enough memory|DefaultCPUAllocator"
)
MODEL = re.compile(
    r"not a valid model identifier|Repository Not Found|Repo id must|does not appear to have a file|"
    r"Cannot find any model weights|Can't load|Invalid repository ID|No such file|cannot find the "
    r"requested files|Couldn't connect|is not a local folder|no file named|We couldn't connect|"
    r"[Ff]ailed to load the model|offline mode is enabled|Unrecognized model|HFValidationError"
)
BLAME = re.compile(r"(?:[A-Za-z_][\w.]*\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$")


class Refused(Exception):
    """What the adapter itself will not or cannot do: a category and a sentence."""

    def __init__(self, category: str, text: str) -> None:
        super().__init__(text)
        self.category = category


class Channel:
    """Our end of the socket. Children of this process do not have it."""

    def __init__(self) -> None:
        fd = int(os.environ.pop("PROFLLM_WORKER_FD", "3"))
        os.set_inheritable(fd, False)
        self.sock = socket.socket(fileno=fd)
        os.register_at_fork(after_in_child=self.sock.close)
        self.sent_ns = 0

    def send(self, **frame) -> None:
        body = json.dumps(frame, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        self.sock.sendall(struct.pack(">I", len(body)) + body)
        self.sent_ns = time.monotonic_ns()

    def read(self, size: int) -> bytes:
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            n = self.sock.recv_into(view[got:])
            if not n:
                raise EOFError
            got += n
        return bytes(data)

    def receive(self) -> dict:
        (size,) = struct.unpack(">I", self.read(4))
        if size > FRAME_BYTES_MAX:
            raise ValueError(f"a frame of {size} bytes; at most {FRAME_BYTES_MAX} are allowed")
        return json.loads(self.read(size))

    def progress(self, done: int, total: int) -> None:
        """At most ten a second; the last one always."""
        if done >= total > 0 or time.monotonic_ns() - self.sent_ns >= PROGRESS_NS:
            self.send(type="progress", done=min(done, total) if total else done, total=total)

    def line(self, text: str) -> None:
        self.send(type="line", text=text)


class Bar:
    """Replaces an engine's progress bar (tqdm): reports to ProfLLM instead of a terminal."""

    channel: Channel

    def __init__(self, iterable=None, total=None, **_) -> None:
        self.iterable = iterable
        if total is None and hasattr(iterable, "__len__"):
            total = len(iterable)
        self.total, self.n, self.postfix = total or 0, 0, ""
        self.start_ns = time.monotonic_ns()

    def __iter__(self):
        for item in self.iterable:
            yield item
            self.channel.progress(0, self.total)

    def __len__(self) -> int:
        return self.total

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        return None

    @property
    def format_dict(self) -> dict:
        return {"elapsed": max(time.monotonic_ns() - self.start_ns, 1) / 1e9, "n": self.n}

    def update(self, n: int = 1) -> None:
        self.n += n
        self.channel.progress(self.n, self.total)

    def set_postfix(self, *_, **__) -> None:
        return None

    set_postfix_str = set_description = set_postfix

    def refresh(self) -> None:
        return None

    close = refresh


class Log:
    """What this process and its children wrote to stderr since a mark, where that is a file."""

    def __init__(self) -> None:
        sys.stdout.flush()
        info = os.fstat(2)
        self.is_file, self.begin = stat.S_ISREG(info.st_mode), info.st_size

    def text(self, bytes_max: int = 4 << 20) -> str:
        if not self.is_file:
            return ""
        sys.stdout.flush()
        with open("/proc/self/fd/2", "rb") as f:
            f.seek(self.begin)
            return f.read(bytes_max).decode("utf-8", "replace")

    def blame(self) -> tuple:
        """The last error that is not a summary of another: its class and its words."""
        found = ("", "")
        for line in self.text().splitlines():
            m = BLAME.search(line)
            if m and "root cause" not in line:
                found = m.groups()
        return found


def one_sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SENTENCE_MAX else text[: SENTENCE_MAX - 3] + "..."


def judge(error: BaseException, log: Log) -> tuple:
    """Category and sentence of what went wrong."""
    if isinstance(error, Refused):
        return error.category, one_sentence(str(error))
    name, text = type(error).__name__, str(error)
    if hasattr(error, "errors") and callable(error.errors):  # pydantic: the first of its list
        try:
            text = error.errors()[0]["msg"].partition("Value error, ")[2] or text
        except (KeyError, IndexError, TypeError):
            pass
    if "root cause" in text:  # the engine runs in a process of its own and said it in the log
        root, words = log.blame()
        name, text = (root, f"{words} ({one_sentence(text)})") if root else (name, text)
    text = one_sentence(text) or name
    both = f"{name}: {text}"
    if MEMORY.search(both):
        return "memory", text
    if name in ("ImportError", "ModuleNotFoundError"):
        return "missing", text
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "other", text
    if MODEL.search(both):
        return "model", text
    if name == "NotImplementedError" or "chat_template is not set" in text:
        return "unsupported", text
    if name in ("ValueError", "ValidationError", "ArgumentError", "TypeError"):
        return "flag", text
    return "other", both if name not in ("RuntimeError", "Exception") else text


def failure(error: BaseException, log: Log) -> dict:
    traceback.print_exception(type(error), error, error.__traceback__)
    sys.stderr.flush()
    category, text = judge(error, log)
    return {"type": "error", "category": category, "text": text}


QUESTIONS = {
    "load": "load",
    "describe": "describe",
    "render": "render",
    "put": "put",
    "generate": "generate",
    "chat": "chat",
    "beam": "beam",
    "encode": "encode",
    "profile_start": "profile_start",
    "profile_stop": "profile_stop",
    "mm_stats": "mm_stats",
    "hash": "hash",
    "blocks": "blocks",
    "block_hash": "block_hash",
}


def answer(adapter, question: dict) -> dict:
    name = QUESTIONS.get(question.get("type"))
    if not name or not hasattr(adapter, name):
        raise Refused("unsupported", f"{adapter.engine} cannot do {question.get('type')}")
    log = Log()
    try:
        return {"type": "ok", **getattr(adapter, name)(question)}
    except (Exception, SystemExit) as error:  # pylint: disable=broad-except
        told = failure(error, log)
        is_run = name not in ("load", "render") and not isinstance(error, Refused)
        if is_run and told["category"] in ("flag", "model"):
            told["category"] = "other"  # arguments and models are read while loading
        return told


def serve(make_adapter) -> int:
    """make_adapter imports the engine; its result answers until ProfLLM is done or gone."""
    channel = Bar.channel = Channel()
    log = Log()
    try:
        adapter = make_adapter(channel)
    except (Exception, SystemExit) as error:  # pylint: disable=broad-except
        channel.send(**failure(error, log))
        return 1
    try:
        channel.send(
            type="hello",
            protocol=PROTOCOL,
            engine=adapter.engine,
            version=str(adapter.version),
            features=adapter.features(),
        )
        while True:
            question = channel.receive()
            if question.get("type") == "shutdown":
                adapter.close()
                channel.send(id=question.get("id"), type="ok")
                return 0
            try:
                told = answer(adapter, question)
            except Refused as error:
                told = {"type": "error", "category": error.category, "text": str(error)}
            channel.send(id=question.get("id"), **told)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        adapter.close()
        return 0


class Batch:
    """The requests of a batch, and how prompts are distinguished."""

    def __init__(self) -> None:
        self.requests = []

    def put(self, question: dict) -> dict:
        if question.get("is_first", True):
            self.requests = []
        self.requests.extend(question["requests"])
        return {"n": len(self.requests)}
