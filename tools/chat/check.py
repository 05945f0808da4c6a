# SPDX-License-Identifier: Apache-2.0
#
# check.py FOLDER rendered.json - renders what generate.mjs rendered, with Python's Jinja
# set up as model servers have it, and compares: every template of the table, every
# content that generate.mjs tries and the blanks of Python that JavaScript does not know.
import json
import os
import sys

from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """The tag that marks the assistant's part: its body and nothing else."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def raise_exception(message):
    raise ValueError(message)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    env.filters["tojson"] = lambda x, **how: json.dumps(x, ensure_ascii=False, **how)
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: "now"
    return env


TOKENS = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token",
          "mask_token"]
BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
NO_BLANKS = "\ufeff\u200b\u180e\u2060\x00\x08\x0e\x1b"


def main(folder, rendered):
    env, compared, wrong = environment(), 0, 0
    for row in json.load(open(rendered)):
        text = open(os.path.join(folder, row["file"]), newline="").read()
        if row["file"].endswith(".json"):
            text = json.loads(text)["chat_template"]
        if isinstance(text, list):
            text = next(t["template"] for t in text if t["name"] == "default")
        template = env.from_string(text)
        values = {name: chr(1 + i) for i, name in enumerate(TOKENS)}
        contents = row["contents"] + [b + "x" + b for b in BLANKS + NO_BLANKS] + [BLANKS]
        for content in contents:
            kept = content.strip() if row["is_stripping"] else content
            want = row["prefix"] + kept + row["suffix"]
            try:
                got = template.render(
                    messages=[{"role": "user", "content": content}], tools=None, documents=None,
                    add_generation_prompt=True, **values)
            except Exception as e:
                got = repr(e)
            compared += 1
            if got != want:
                wrong += 1
                print(f"{row['file']}: {content!r}:\n  got  {got!r:.300}\n  want {want!r:.300}")
                break
        for content in contents if row["system"] else []:
            said, system = row["system"], content or "system"
            want = (said["prefix"] + (system.strip() if said["is_stripping"] else system)
                    + said["middle"] + (content.strip() if row["is_stripping"] else content)
                    + row["suffix"])
            got = template.render(
                messages=[{"role": "system", "content": system},
                          {"role": "user", "content": content}],
                tools=None, documents=None, add_generation_prompt=True, **values)
            compared += 1
            if got != want:
                wrong += 1
                print(f"{row['file']}: system {content!r}:\n  got  {got!r:.300}\n  want {want!r:.300}")
                break
    print(f"{compared} renderings compared, {wrong} templates differ")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
