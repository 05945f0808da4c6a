#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the defaults of schema/engine_args.json with the sources of vLLM's releases.

Only the source files that declare arguments are read from each wheel on PyPI, by HTTP range
requests (about 5 MB a release), and they are parsed, never executed. Each difference is one line;
the exit status is 1 when there are any.

usage: defaults.py [--cache DIR] [--table FILE] [--print] [VERSION ...]
    VERSION  releases such as 0.11.0; default: every release that the table covers
    --print  print each argument with its default in every release instead of comparing
"""
import argparse
import ast
import io
import json
import pathlib
import sys
import urllib.parse
import urllib.request
import zipfile

INDEX = "https://pypi.org/pypi/vllm/json"
READ_AT_LEAST = 1 << 20  # bytes of one request
ROOT = pathlib.Path(__file__).resolve().parents[3]
# Where the server's help and the table differ on purpose: a value taken from the environment or
# from the machine, and the value that it has without either.
KNOWN = {"envs.VLLM_SERVER_DEV_MODE": False, "H11_MAX_INCOMPLETE_EVENT_SIZE_DEFAULT": 4194304,
         "H11_MAX_HEADER_COUNT_DEFAULT": 256, "int(ssl.CERT_NONE)": 0,
         "envs.VLLM_LOGGING_CONFIG_PATH": None, "argparse.SUPPRESS": None}
# Functions that read a variable of the environment: what they give without it.
KNOWN_FACTORIES = {"_get_mm_hasher_algorithm": "blake3"}


# ---- files of a release ----

class RemoteFile(io.RawIOBase):
    """A file behind a URL, read by ranges."""

    def __init__(self, url, size):
        self.url, self.size, self.at, self.parts = url, size, 0, []

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def read(self, n=-1):
        n = self.size - self.at if n < 0 else min(n, self.size - self.at)
        if n <= 0:
            return b""
        for begin, part in self.parts:
            if begin <= self.at and self.at + n <= begin + len(part):
                break
        else:
            want = min(max(n, READ_AT_LEAST), self.size)
            begin = min(self.at, self.size - want)
            request = urllib.request.Request(
                self.url, headers={"Range": f"bytes={begin}-{begin + want - 1}"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                if answer.status != 206:
                    sys.exit(f"{self.url}: expected status 206, got {answer.status}")
                part = answer.read()
            self.parts.append((begin, part))
        out = part[self.at - begin:self.at - begin + n]
        self.at += n
        return out


def is_wanted(name):
    return name.endswith(".py") and (
        name in ("vllm/engine/arg_utils.py", "vllm/entrypoints/cli/serve.py") or
        name.startswith("vllm/config/") or
        name.startswith("vllm/entrypoints/") and name.endswith("cli_args.py"))


def fetch(version, files, cache):
    """The sources of a release as {name: text}."""
    folder = cache / version
    done = folder / "done"
    if not done.exists():
        wheel = next(f for f in files if f["filename"].endswith("x86_64.whl"))
        url = urllib.parse.urljoin(INDEX, wheel["url"])
        with zipfile.ZipFile(RemoteFile(url, wheel["size"])) as z:
            for name in filter(is_wanted, z.namelist()):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(z.read(name))
        done.write_text("")
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.py"))}


# ---- what the sources say ----

class Unknown(Exception):
    pass


class Release:
    def __init__(self, sources):
        self.classes, self.names = {}, {}
        for name, text in sources.items():
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    self.classes.setdefault(node.name, node)
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    self.names.setdefault(node.targets[0].id, node.value)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    self.names.setdefault(node.target.id, node.value)
        self.sources = sources

    def fields(self, name):
        """{field: the expression of its default} of a class and of those it is made of."""
        node = self.classes.get(name)
        if node is None:
            raise Unknown(f"class {name}")
        out = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                out.update(self.fields(base.id))
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                if "ClassVar" not in ast.unparse(line.annotation):
                    out[line.target.id] = line.value
            elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                out[line.targets[0].id] = line.value
        return out

    def value(self, node):
        """The value of an expression, as far as it can be told without running anything."""
        text = ast.unparse(node)
        if text in KNOWN:
            return KNOWN[text]
        if isinstance(node, ast.Name):
            if node.id in self.names and self.names[node.id] is not None:
                return self.value(self.names[node.id])
            raise Unknown(text)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            fields = self.fields(node.value.id)
            if fields.get(node.attr) is None:
                raise Unknown(text)
            return self.value(fields[node.attr])
        if isinstance(node, ast.Attribute) and node.attr == "value":
            return self.value(node.value)
        if isinstance(node, ast.Call):
            return self.call(node, text)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(item) for item in node.elts]
        try:
            return ast.literal_eval(node)
        except ValueError:
            pass
        try:  # 4 << 20
            if all(isinstance(n, (ast.BinOp, ast.Constant, ast.operator, ast.Expression))
                   for n in ast.walk(node)):
                return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
        except (SyntaxError, TypeError):
            pass
        raise Unknown(text)

    def call(self, node, text):
        by_name = {k.arg: k.value for k in node.keywords}
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("field", "Field"):
            if "default" in by_name or node.args:
                return self.value(by_name.get("default", node.args[0] if node.args else None))
            return self.made(by_name["default_factory"])
        if name == "get_field":
            return self.value(self.fields(node.args[0].id)[node.args[1].value])
        if name in self.classes and not node.args and not node.keywords:
            return self.made(node.func)
        raise Unknown(text)

    def made(self, factory):
        """What a default_factory makes; {"()": NAME}: an object of a class with its defaults."""
        if isinstance(factory, ast.Lambda):
            return self.value(factory.body)
        if isinstance(factory, ast.Name) and factory.id in ("list", "dict", "set"):
            return {"list": [], "dict": {}, "set": []}[factory.id]
        if isinstance(factory, ast.Name) and factory.id in KNOWN_FACTORIES:
            return KNOWN_FACTORIES[factory.id]
        if isinstance(factory, ast.Name) and factory.id in self.classes:
            bases = [ast.unparse(b) for b in self.classes[factory.id].bases]
            return {} if any(b.startswith("dict") for b in bases) else {"()": factory.id}
        raise Unknown(ast.unparse(factory))

    # ---- arguments ----

    def arguments(self):
        """{"--name": default} of `vllm serve`; an Unknown where the expression is not understood."""
        out = {}
        for function in self.functions():
            self.read(function, {}, out)
        return out

    def functions(self):
        cli = next(text for name, text in self.sources.items() if name.endswith("cli_args.py") and
                   "def make_arg_parser" in text)
        yield next(n for n in ast.parse(cli).body
                   if isinstance(n, ast.FunctionDef) and n.name == "make_arg_parser")
        yield ast.parse(self.sources["vllm/entrypoints/cli/serve.py"])
        for name in ("EngineArgs", "AsyncEngineArgs"):
            yield next(n for n in self.classes[name].body
                       if isinstance(n, ast.FunctionDef) and n.name == "add_cli_args")
        yield self.classes["FrontendArgs"]

    def read(self, function, kwargs, out):
        if isinstance(function, ast.ClassDef):
            for name, node in self.fields(function.name).items():
                if node is not None:
                    out["--" + name.replace("_", "-")] = self.told(node)
            out["--middleware"] = []  # set outside the class in every release
            return
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and \
                    ast.unparse(node.value.func) == "get_kwargs":
                kwargs[ast.unparse(node.targets[0])] = node.value.args[0].id
        for node in ast.walk(function):  # moe_backend_kwargs = kernel_kwargs["moe_backend"]
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and \
                    ast.unparse(node.value.value) in kwargs:
                kwargs[ast.unparse(node.targets[0])] = node.value
        for node in ast.walk(function):
            if isinstance(node, ast.For):
                self.read_loop(node, out)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                    node.func.attr == "add_argument":
                self.read_argument(node, kwargs, out)

    def read_loop(self, loop, out):
        """for arg, type in [("--a", str), ...]: add_argument(arg, ...) without a default."""
        if isinstance(loop.iter, ast.List):
            for item in loop.iter.elts:
                name = item.elts[0] if isinstance(item, ast.Tuple) else item
                if isinstance(name, ast.Constant):
                    out[name.value] = None

    def read_argument(self, call, kwargs, out):
        names = [a.value for a in call.args if isinstance(a, ast.Constant)]
        names = [n for n in names if n.startswith("--")]
        default = ast.Constant(None)
        for k in call.keywords:
            if k.arg == "action" and getattr(k.value, "value", None) == "store_true":
                default = ast.Constant(False)
        for k in call.keywords:
            if k.arg is None:
                default = self.unpacked(k.value, kwargs, default)
            elif k.arg == "default":
                default = k.value
        for name in names[:1]:
            out[name] = self.told(self.of_kwargs(default, kwargs))

    def of_kwargs(self, node, kwargs):
        """X_kwargs["field"]["default"] is the field's default."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
            owner = kwargs.get(ast.unparse(node.value.value))
            if owner and node.slice.value == "default":
                return self.fields(owner)[node.value.slice.value]
        return node

    def unpacked(self, node, kwargs, default):
        """**X_kwargs["field"], or **{**X_kwargs["field"], "default": ...}."""
        if isinstance(node, ast.Name) and isinstance(kwargs.get(node.id), ast.Subscript):
            return self.unpacked(kwargs[node.id], kwargs, default)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in kwargs:
            found = self.fields(kwargs[ast.unparse(node.value)]).get(node.slice.value)
            return found if found is not None else ast.Name(f"no default of {ast.unparse(node)}")
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if key is None:
                    default = self.unpacked(value, kwargs, default)
                elif getattr(key, "value", None) == "default":
                    default = value
        return default

    def told(self, node):
        try:
            return self.value(node)
        except (Unknown, KeyError) as e:
            return Unknown(str(e))


# ---- our table ----

def number(version):
    major, minor = version.split(".")[:2]
    return int(major) * 1000 + int(minor)


def micro(version):
    parts = version.split(".")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else 0


def precise(version):
    return number(version) * 1000 + micro(version)


def is_in(arg, version):
    since, until = arg.get("since"), arg.get("until")
    return not (since and precise(version) < precise(since)) and \
        not (until and (precise(version) > precise(until) if until.count(".") > 1 else
                        number(version) > number(until)))


def default_of(arg, version):
    """As the table says it: the first range that ends at this version or later."""
    for before in arg.get("earlier", []):
        until = before["until"]
        if (precise(version) <= precise(until) if until.count(".") > 1 else
                number(version) <= number(until)):
            return before.get("default")
    return arg.get("default")


def typed(arg, value):
    """A default of the sources as it would be typed: what the table holds; None: none."""
    if value is None or value == "":
        return None
    if isinstance(value, dict) and "()" in value:
        return None  # an object of defaults of its own
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        if arg["kind"] == "list":
            return " ".join(map(str, value)) or None
        return json.dumps(value)
    return str(value)


def is_same(arg, ours, theirs):
    if ours == theirs:
        return True
    try:
        return arg["kind"] in ("int", "human", "float") and float(ours) == float(theirs)
    except (TypeError, ValueError):
        return False


def compare(table, version, told):
    """One line for each difference."""
    known = {a["name"]: a for a in table["arguments"]}
    for name, value in sorted(told.items()):
        arg = known.get(name[2:])
        if arg is None or not is_in(arg, version):
            yield f"{version} {name}: the release has it, the table does not"
        elif isinstance(value, Unknown):
            yield f"{version} {name}: the sources' default is not understood: {value}"
        elif not is_same(arg, default_of(arg, version), typed(arg, value)):
            yield (f"{version} {name}: the table has {default_of(arg, version)!r}, "
                   f"the release {typed(arg, value)!r}")
    for arg in table["arguments"]:
        if is_in(arg, version) and "--" + arg["name"] not in told:
            yield f"{version} --{arg['name']}: the table has it, the release does not"


def print_all(table, told):
    """Each argument with its default in every release that changed it."""
    for name in sorted({n for release in told.values() for n in release}):
        line, last = [], object()
        for version, release in told.items():
            value = release.get(name, "-")
            value = f"? {value}" if isinstance(value, Unknown) else repr(value)
            if value != last:
                line.append(f"{version}: {value}")
            last = value
        print(name, "; ".join(line), sep="\t")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("vllm-sources"))
    parser.add_argument("--table", type=pathlib.Path,
                        default=ROOT / "schema" / "engine_args.json")
    parser.add_argument("--print", action="store_true", dest="is_print")
    parser.add_argument("versions", nargs="*")
    options = parser.parse_args()
    table = json.loads(options.table.read_text())
    with urllib.request.urlopen(INDEX, timeout=60) as answer:
        releases = json.load(answer)["releases"]
    oldest, newest = number(table["oldest"]), number(table["newest"])
    versions = options.versions or sorted(
        (v for v, files in releases.items() if files and v.replace(".", "").isdigit() and
         oldest <= number(v) <= newest), key=precise)
    told = {v: Release(fetch(v, releases[v], options.cache)).arguments() for v in versions}
    if options.is_print:
        print_all(table, told)
        return 0
    differences = [line for v in versions for line in compare(table, v, told[v])]
    for line in differences:
        print(line)
    print(f"{len(versions)} releases, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
