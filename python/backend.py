# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel with the standard library alone, for `make wheel` and for pip (PEP 517).

A wheel is a zip file: the package, in profllm/native the library, the program and its workers as make
built them (the folder that PROFLLM_NATIVE names, else ../build), and three files about itself. The
files are for one platform and need the C library, OpenSSL 3, PCRE2, zlib and zstd of the system, so the
tag is linux_MACHINE; a manylinux tag would claim that they are inside.
"""
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "src" / "profllm"
SUMMARY = re.search(r'^description = "(.*)"$', (HERE / "pyproject.toml").read_text("utf-8"), re.M)[1]


def version_of(text):
    """The version of `profllm --version` as PEP 440 spells it: v1.2-3-gabc becomes 1.2.post3+gabc."""
    found = re.fullmatch(r"v?(\d+(?:\.\d+)*)(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?", text)
    number, count, commit, dirty = found.groups() if found else ("0", None, None, None)
    if not found:
        commit = re.sub(r"[^0-9a-z]+", ".", text.lower()).strip(".") or None
    local = ".".join(filter(None, [commit, "dirty" if dirty else None]))
    return number + (".post" + count if count else "") + ("+" + local if local else "")


def native_files(folder):
    """(name in the wheel, path) of what make built."""
    library = sorted(folder.glob("libprofllm.so.*"))
    program = folder / "profllm"
    if not library or not program.is_file():
        sys.exit("%s has no libprofllm.so and profllm; run make wheel" % folder)
    workers = sorted(path for path in (folder / "workers").iterdir() if path.is_file())
    return ([("profllm/native/" + path.name, path) for path in [library[-1], program]] +
            [("profllm/native/workers/" + path.name, path) for path in workers])


class Wheel:
    """An open wheel; files are dated 1980, so that the same input gives the same bytes."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100000 | mode) << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(data)))

    def close(self, name):
        self.zip.writestr(zipfile.ZipInfo(name), "\n".join(self.record + [name + ",,"]) + "\n")
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into the folder and returns its name."""
    native = Path(os.environ.get("PROFLLM_NATIVE", HERE.parent / "build"))
    files = native_files(native)
    said = subprocess.run([native / "profllm", "--version"], stdout=subprocess.PIPE, check=True)
    version = version_of(said.stdout.decode().split()[1])
    tag = "py3-none-linux_" + platform.machine()
    info = "profllm-%s.dist-info/" % version
    name = "profllm-%s-%s.whl" % (version, tag)

    wheel = Wheel(Path(wheel_directory, name))
    for path in sorted(PACKAGE.iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            wheel.add("profllm/" + path.name, path.read_bytes())
    for place, path in files:
        wheel.add(place, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    wheel.add(info + "METADATA", (
        "Metadata-Version: 2.1\nName: profllm\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.9\nProvides-Extra: frame\nRequires-Dist: pandas; extra == 'frame'\n"
        % (version, SUMMARY)).encode())
    wheel.add(info + "LICENSE", (HERE.parent / "LICENSE").read_bytes())
    wheel.add(info + "WHEEL", (
        "Wheel-Version: 1.0\nGenerator: profllm\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode())
    wheel.add(info + "entry_points.txt", b"[console_scripts]\nprofllm = profllm:main\n")
    wheel.close(info + "RECORD")
    return name


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: backend.py FOLDER")
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
