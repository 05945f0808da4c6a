# SPDX-License-Identifier: Apache-2.0
"""Made-up text, audio and pictures: our own, fixed by the generator that is passed in."""

import io
import random

import numpy as np
import soundfile
from PIL import Image

WORDS = (
    "river lamp seventeen copper bridge quiet orchard signal margin velvet harbor candle "
    "ordinary weather kitchen thirteen paper engine morning garden lantern window number "
    "naïve Straße café señor 東京 速度 Привет 🙂 e\u0301 \u00a0 tab\tword line\nbreak quote\"s back\\slash "
    "</script> \u2028 2.5e-3 don't we'll 1234567 __init__ == ;; <|im_end|> {} {0} %s"
).split(" ")


def text(rng: random.Random, n: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(n))


def code(rng: random.Random, lines: int) -> str:
    return "".join(f"{'    ' * rng.randrange(3)}{rng.choice(WORDS[:20])} = {rng.randrange(99)}\n"
                   for _ in range(lines))


def pixels(rng: random.Random, width: int, height: int, channels: int = 3) -> np.ndarray:
    """A smooth picture with some noise, so that encoders have something to lose."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [127 + 60 * np.sin(x / rng.uniform(3, 30) + rng.random())
              + 60 * np.cos(y / rng.uniform(3, 30)) for _ in range(channels)]
    noise = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 8, (height, width, channels))
    return np.clip(np.stack(planes, axis=2) + noise, 0, 255).astype(np.uint8)


def picture(rng: random.Random, kind: str) -> bytes:
    """The bytes of an image file of one of KINDS."""
    width, height = rng.randrange(17, 90), rng.randrange(17, 90)
    rgb = Image.fromarray(pixels(rng, width, height))
    out = io.BytesIO()
    if kind == "jpeg":
        rgb.save(out, "JPEG", quality=90)
    elif kind == "jpeg444":
        rgb.save(out, "JPEG", quality=95, subsampling=0, progressive=True)
    elif kind == "jpeg-grey":
        rgb.convert("L").save(out, "JPEG")
    elif kind == "jpeg-cmyk":
        rgb.convert("CMYK").save(out, "JPEG", quality=92)
    elif kind == "jpeg-exif":
        exif = Image.Exif()
        exif[0x0112] = rng.choice([2, 3, 4, 5, 6, 7, 8])
        rgb.save(out, "JPEG", exif=exif)
    elif kind == "jpeg-comment":
        rgb.save(out, "JPEG", comment=b"made up", quality=85)
    elif kind == "png":
        rgb.save(out, "PNG")
    elif kind == "png-grey":
        rgb.convert("L").save(out, "PNG")
    elif kind == "png-16":
        grey = pixels(rng, width, height, 1)[:, :, 0].astype(np.uint16) * 257
        Image.fromarray(grey).save(out, "PNG")
    elif kind == "png-1":
        rgb.convert("1").save(out, "PNG")
    elif kind == "png-rgba":
        Image.fromarray(pixels(rng, width, height, 4)).save(out, "PNG")
    elif kind == "png-la":
        Image.fromarray(pixels(rng, width, height, 4)).convert("LA").save(out, "PNG")
    elif kind == "png-palette":
        rgb.quantize(40).save(out, "PNG")
    elif kind == "png-palette-clear":
        rgb.quantize(40).save(out, "PNG", transparency=3)
    elif kind == "webp":
        rgb.save(out, "WEBP", lossless=True)
    elif kind == "gif":
        rgb.quantize(64).save(out, "GIF")
    elif kind == "jpeg-coarse":
        rgb.save(out, "JPEG", quality=30)
    elif kind == "bmp":
        rgb.save(out, "BMP")
    else:
        raise ValueError(kind)
    return out.getvalue()


KINDS = ("jpeg", "jpeg444", "jpeg-grey", "jpeg-cmyk", "jpeg-exif", "jpeg-comment", "png", "png-grey",
         "png-16", "png-1", "png-rgba", "png-la", "png-palette", "png-palette-clear", "webp", "gif",
         "jpeg-coarse")


def samples(rng: random.Random, frames: int, channels: int = 1) -> np.ndarray:
    t = np.arange(frames)
    waves = [0.4 * np.sin(t * rng.uniform(0.01, 0.2)) for _ in range(channels)]
    return np.stack(waves, axis=1) if channels > 1 else waves[0]


def sound(rng: random.Random, kind: str, seconds: float | None = None) -> bytes:
    """The bytes of an audio file: flac, wav, wav-stereo, wav-float, wav-8k or ogg."""
    seconds = rng.uniform(0.2, 2.0) if seconds is None else seconds
    rate = 8000 if kind == "wav-8k" else 16000
    channels = 2 if kind == "wav-stereo" else 1
    format_name, subtype = {"flac": ("FLAC", "PCM_16"), "ogg": ("OGG", "VORBIS"),
                            "wav-float": ("WAV", "FLOAT")}.get(kind, ("WAV", "PCM_16"))
    out = io.BytesIO()
    soundfile.write(out, samples(rng, int(seconds * rate), channels), rate, format=format_name,
                    subtype=subtype)
    return out.getvalue()
