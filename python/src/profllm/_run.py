# SPDX-License-Identifier: Apache-2.0
"""profllm run: an experiment or a suite."""
import ctypes
import json
import math
import os
import queue
import sys
import threading
import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from . import _native as native
from ._errors import Document, Failed, Interrupted, Refused
from ._progress import Meter, Progress

Path = Union[str, "os.PathLike[str]"]


def plain(value: Any) -> Any:
    """A value as JSON has it: infinities as texts, as in configurations; paths; scalars of NumPy."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, (str, int, float)) and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def tell(warn: Optional[Callable[[str], None]], text: str) -> None:
    """To the caller's function, else to the module warnings, at the caller's line."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    if warn:
        warn(text)
    else:
        warnings.warn(text, stacklevel=level)


def run(config: Union[Mapping[str, Any], Path], set: Optional[Mapping[str, Any]] = None,
        output: Optional[Path] = None, progress: Progress = True,
        warn: Optional[Callable[[str], None]] = None) -> Document:
    """Runs an experiment or a suite as `profllm run` does and returns its document.

    config: a dict with the keys of a configuration, or the path of a file.
    set: {"benchmark.num_prompts": 20}, values that override the configuration's.
    output: where the document is written, too; None: where the configuration says, else nowhere.
    progress: True draws one line on a terminal or in a notebook; a function gets (what, done, total), with
        total 0 where it is not known. An exception that it raises stops the run.
    warn: gets each warning as a text; None: the module warnings.

    Raises Refused, Failed or Interrupted. Where some requests or members of a suite failed, the document
    is returned and its "status" is "partial". Servers that the run started have ended in each case.
    """
    call = Call(config, set or {}, output)
    call.start()
    call.follow(Meter(progress), warn)
    return call.document()


class Call:
    """One call of profllm_run, on a thread of its own, so that the caller's thread can take a Ctrl-C.

    The hooks only put what they get into a queue: the caller's functions run on the caller's thread and
    cannot delay the measurement.
    """

    def __init__(self, config: Union[Mapping[str, Any], Path], set: Mapping[str, Any],
                 output: Optional[Path]) -> None:
        if not isinstance(set, Mapping):
            raise TypeError("set: expected a dict, such as {'benchmark.num_prompts': 20}, got %s" %
                            type(set).__name__)
        words = ["%s=%s" % (key, json.dumps(plain(value))) for key, value in set.items()]
        self.lib = native.library()
        self.said: "queue.SimpleQueue[Optional[Tuple[Any, ...]]]" = queue.SimpleQueue()
        self.cancel = ctypes.c_ubyte(0)
        self.request = native.Request(size=ctypes.sizeof(native.Request))
        if isinstance(config, Mapping):
            self.request.config_text = json.dumps(plain(config)).encode()
        elif isinstance(config, (str, bytes, os.PathLike)):
            self.request.config_path = os.fsencode(config)
        else:
            raise TypeError("config: expected a dict or the path of a file, got %s" % type(config).__name__)
        self.request.set = (ctypes.c_char_p * (len(words) + 1))(*[w.encode() for w in words], None)
        self.request.output_path = None if output is None else os.fsencode(output)
        self.request.cancel = ctypes.pointer(self.cancel)
        self.request.hooks.line = self.put("line")
        self.request.hooks.warn = self.put("warn")
        self.request.hooks.progress = native.PROGRESS(lambda _, what, done, total: self.said.put(
            ("progress", what.decode(errors="replace"), done, total)))
        self.outcome = native.Outcome(size=ctypes.sizeof(native.Outcome))
        self.failure: Optional[BaseException] = None

    def put(self, kind: str) -> Any:
        return native.TEXT(lambda _, text: self.said.put((kind, text.decode(errors="replace"))))

    def start(self) -> None:
        def work() -> None:
            try:
                self.lib.profllm_run(ctypes.byref(self.request), ctypes.byref(self.outcome))
            finally:
                self.said.put(None)

        threading.Thread(target=work, name="profllm.run").start()

    def follow(self, meter: Meter, warn: Optional[Callable[[str], None]]) -> None:
        """Until the call has ended. An exception stops it and is kept; later ones are dropped."""
        while True:
            try:
                said = self.said.get()
                if said is None:
                    break
                if not self.failure:
                    self.pass_on(said, meter, warn)
            except BaseException as failure:  # the call goes on until it has stopped its servers
                self.failure = self.failure or failure
                self.cancel.value = 1
        meter.clear()

    @staticmethod
    def pass_on(said: Tuple[Any, ...], meter: Meter, warn: Optional[Callable[[str], None]]) -> None:
        if said[0] == "progress":
            meter.show(*said[1:])
        elif said[0] == "line":
            meter.say(said[1])
        else:
            meter.clear()
            tell(warn, said[1])

    def document(self) -> Document:
        """What run returns or raises."""
        text, error, status = self.outcome.document, self.outcome.error, self.outcome.status
        self.lib.profllm_release(ctypes.byref(self.outcome))
        document: Optional[Dict[str, Any]] = json.loads(text) if text else None
        reason = error.decode(errors="replace") if error else "the run failed"
        if reason.startswith("--config: "):  # the option that the argument config is here
            reason = reason[2:]
        if isinstance(self.failure, KeyboardInterrupt):
            raise Interrupted(document) from None
        if self.failure:
            raise self.failure
        if status == native.REFUSED:
            raise Refused(reason, document)
        if status == native.INTERRUPTED:
            raise Interrupted(document)
        if status == native.FAILED or document is None:
            raise Failed(reason, document)
        return document
