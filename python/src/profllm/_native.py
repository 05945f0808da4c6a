# SPDX-License-Identifier: Apache-2.0
"""libprofllm by ctypes (src/lib/profllm.h says what each field means), and the program profllm.

Both are in the folder native of an installed wheel. PROFLLM_LIB and PROFLLM_PROGRAM name others.
"""
import ctypes
import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Any

API = 1
NATIVE = Path(__file__).resolve().parent / "native"
LIBRARY = "libprofllm.so.%d" % API

TEXT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)
COMPLETED, PARTIAL, FAILED, INTERRUPTED, REFUSED = range(5)


class Hooks(ctypes.Structure):
    _fields_ = [("self", ctypes.c_void_p), ("line", TEXT), ("report", TEXT), ("warn", TEXT),
                ("progress", PROGRESS)]


class Request(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("config_path", ctypes.c_char_p),
                ("config_text", ctypes.c_char_p), ("set", ctypes.POINTER(ctypes.c_char_p)),
                ("output_path", ctypes.c_char_p), ("hooks", Hooks),
                ("cancel", ctypes.POINTER(ctypes.c_ubyte))]


class Outcome(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int),
                ("document", ctypes.c_char_p), ("error", ctypes.c_char_p),
                ("own", ctypes.c_void_p)]


def library_path() -> str:
    """A path, or the name that the system's loader looks for."""
    named = os.environ.get("PROFLLM_LIB")
    packed = NATIVE / LIBRARY
    return named or (str(packed) if packed.exists() else LIBRARY)


@functools.lru_cache(maxsize=None)
def load(path: str) -> Any:
    """The library; OSError says why it cannot be used."""
    try:
        lib = ctypes.CDLL(path)
    except OSError as why:
        raise OSError("libprofllm cannot be loaded: %s; install the wheel of profllm, or name the library in "
                      "PROFLLM_LIB" % why) from None
    lib.profllm_version.restype = ctypes.c_char_p
    lib.profllm_api.restype = ctypes.c_uint
    lib.profllm_run.argtypes = [ctypes.POINTER(Request), ctypes.POINTER(Outcome)]
    lib.profllm_release.argtypes = [ctypes.POINTER(Outcome)]
    lib.profllm_release.restype = None
    if lib.profllm_api() != API:
        raise OSError("%s has interface %d, and this package needs %d; install the package and the library "
                      "from the same release" % (path, lib.profllm_api(), API))
    return lib


def library() -> Any:
    return load(library_path())


def version() -> str:
    """The version of the library."""
    text: bytes = library().profllm_version()
    return text.decode()


def program() -> str:
    """The path of the program profllm, for verbs that have no function here."""
    named = os.environ.get("PROFLLM_PROGRAM")
    neighbor = Path(library_path()).parent / "profllm"
    if named:
        return named
    if neighbor.is_file() and os.access(neighbor, os.X_OK):
        return str(neighbor)
    found = shutil.which("profllm")
    if not found:
        raise FileNotFoundError("the program profllm is neither next to the library nor in PATH; install "
                                "the wheel of profllm, or name the program in PROFLLM_PROGRAM")
    return found


def main() -> None:
    """The command profllm of an installed wheel: becomes the program."""
    path = str(NATIVE / "profllm")
    os.execv(path, [path] + sys.argv[1:])
