# SPDX-License-Identifier: Apache-2.0
"""Media in requests as what independent decoders see in them, and which bytes they are.

A data URL anywhere in a JSON value becomes {"image": [width, height], ...} or {"video":
[width, height, frames, rate], ...}; the same for base64 audio and for uploaded files. The
keys of EXACT must be equal, "bytes" is only counted, "look" is compared with a tolerance.
"""

import base64
import functools
import hashlib
import io
import os
import re
import tempfile

import cv2
import soundfile
from PIL import Image

DATA_URL = re.compile(r"data:(image|video|audio)/([\w.+-]+);base64,")
LOOK_TOLERANCE = 6


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def image(mime: str, data: bytes) -> dict:
    try:
        opened = Image.open(io.BytesIO(data))
        opened.load()
    except Exception:
        return {"type": mime, "not an image": sha(data)}
    rgb = opened.convert("RGB")
    out = {"type": mime, "image": list(opened.size), "mode": opened.mode, "format": opened.format,
           "bytes": sha(data), "length": len(data),
           "pixels": sha(rgb.tobytes()), "look": list(rgb.resize((8, 8), Image.BOX).tobytes())}
    if opened.format == "JPEG":
        out["sampling"] = [list(x[1:3]) for x in opened.layer]
        out["tables"] = {str(k): list(v) for k, v in opened.quantization.items()}
        out["progressive"] = "progressive" in opened.info
    return out


def video(mime: str, data: bytes) -> dict:
    with tempfile.NamedTemporaryFile(suffix=".mp4") as f:
        f.write(data)
        f.flush()
        capture = cv2.VideoCapture(f.name)
        frames, size = 0, (0, 0)
        while True:
            ok, frame = capture.read()
            if not ok:
                break
            frames += 1
            size = (frame.shape[1], frame.shape[0])
        code = int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, "little").decode(errors="replace")
        rate = round(capture.get(cv2.CAP_PROP_FPS), 3)
        said = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        capture.release()
    return {"type": mime, "video": [*size, frames, rate], "frames said": said,
            "codec": {"FMP4": "mp4v"}.get(code, code), "bytes": sha(data), "length": len(data)}


def audio(data: bytes) -> dict:
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as f:
            pcm = f.read(dtype="int16", always_2d=True)
            return {"audio": [f.frames, f.samplerate, f.channels], "subtype": f.subtype,
                    "format": f.format, "samples": sha(pcm.tobytes()), "bytes": sha(data),
                    "length": len(data)}
    except Exception:
        return {"not audio": sha(data)}


@functools.lru_cache(maxsize=4096)
def url(text: str) -> tuple:
    kind, mime, data = *DATA_URL.match(text).groups(), text[text.index(",") + 1:]
    try:
        data = base64.b64decode(data, validate=True)
    except ValueError:
        return ("text", text)
    name = f"{kind}/{mime}"
    return (kind, image(name, data) if kind == "image" else video(name, data))


def digest(value):
    """value with all media in it replaced."""
    if isinstance(value, str):
        if DATA_URL.match(value) and len(value) > 100:
            kind, seen = url(value)
            return dict(seen) if kind != "text" else seen
        return value
    if isinstance(value, list):
        return [digest(x) for x in value]
    if isinstance(value, dict):
        if isinstance(value.get("data"), str) and "format" in value:
            return {**value, "data": audio(base64.b64decode(value["data"]))}
        return {k: digest(x) for k, x in value.items()}
    return value


def upload(name: str, data: bytes) -> dict:
    return {"name": os.path.basename(name), **audio(data)}


def same(a, b, counts: dict) -> bool:
    """Equality of two digests; counts["media"], ["media equal in bytes"] and so on are raised."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, counts) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        is_media = "bytes" in a and "length" in a
        if is_media and "bytes" in b:
            counts["media"] = counts.get("media", 0) + 1
            for key in ("bytes", "pixels"):
                if a.get(key) and a.get(key) == b.get(key):
                    what = f"media equal in {key}"
                    counts[what] = counts.get(what, 0) + 1
            worst = max((abs(x - y) for x, y in zip(a.get("look", []), b.get("look", []))), default=0)
            loose = ("bytes", "length", "pixels", "look")
            a, b = ({k: v for k, v in d.items() if k not in loose} for d in (a, b))
            if worst > LOOK_TOLERANCE:
                return False
        return list(a) == list(b) and all(same(a[k], b[k], counts) for k in a)
    return type(a) is type(b) and a == b
