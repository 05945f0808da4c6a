# SPDX-License-Identifier: Apache-2.0
"""What our media layer writes and reads, judged by Pillow, OpenCV, soundfile and ffprobe.

    check.py DRIVER DIR    files are kept in DIR

One line per finding; `same` counts files equal to the byte. Exit status 1: a difference that matters.
"""
import io, json, subprocess, sys
import cv2, numpy as np, soundfile
from PIL import Image, ImageOps, features

driver, where = sys.argv[1], sys.argv[2]
failed = 0


def check(ok, what):
    global failed
    if not ok:
        failed += 1
        print("FAILED", what)


def ours(what, *numbers, data=b""):
    return subprocess.run([driver, what, *map(str, numbers)], input=bytes(data), capture_output=True)


def noise(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def smooth(height, width):
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 // max(width - 1, 1), y * 255 // max(height - 1, 1), (x ^ y) & 255],
                    2).astype(np.uint8)


def jpegs():
    same = total = 0
    for height, width in [(256, 256), (720, 1280), (1, 1), (17, 31), (8, 8), (16, 16), (333, 1),
                          (1, 333), (1080, 1920), (15, 16)]:
        for seed, make in [(0, lambda: noise(0, height, width, 3)), (1, lambda: smooth(height, width))]:
            rgb = make()
            out = ours("jpeg", width, height, data=rgb.tobytes()).stdout
            b = io.BytesIO()
            Image.fromarray(rgb).save(b, "JPEG")
            theirs = b.getvalue()
            im, pil = Image.open(io.BytesIO(out)), Image.open(io.BytesIO(theirs))
            name = f"jpeg {height}x{width} seed {seed}"
            total += 1
            same += out == theirs
            check(out == theirs, f"{name}: {len(out)} bytes, Pillow has {len(theirs)}")
            check(im.size == (width, height) and im.mode == "RGB", name + ": size")
            check(im.quantization == pil.quantization, name + ": quantisation tables")
            check([c[1:] for c in im.layer] == [(2, 2, 0), (1, 1, 1), (1, 1, 1)], name + ": sampling")
            check(np.array_equal(np.asarray(im), np.asarray(pil)), name + ": pixels")
            if seed == 0 and height in (256, 720):
                print(f"{name}: {len(out)} bytes")
    print(f"JPEG written: {same} of {total} files equal Pillow's to the byte "
          f"(its libjpeg-turbo is {features.version('libjpeg_turbo')})")


def pngs():
    for height, width in [(256, 256), (1, 1), (7, 5), (720, 1280)]:
        rgb = smooth(height, width)
        im = Image.open(io.BytesIO(ours("png", width, height, data=rgb.tobytes()).stdout))
        check(im.mode == "RGB" and np.array_equal(np.asarray(im), rgb), f"png {height}x{width}")


def on_white(im):
    """Datasets spec 4.5."""
    if im.has_transparency_data:
        im = im.convert("RGBA")
        white = Image.new("RGB", im.size, (255, 255, 255))
        white.paste(im, mask=im.split()[3])
        return white
    return im.convert("RGB")


def encoded(im, kind, **options):
    b = io.BytesIO()
    im.save(b, kind, **options)
    return b.getvalue()


def pictures():
    a, h, w = np.arange, 37, 53
    rgb, rgba = noise(2, h, w, 3), noise(3, h, w, 4)
    grey = noise(4, h, w)
    wide = np.random.default_rng(5).integers(0, 600, (h, w)).astype(np.uint16)
    pal = Image.fromarray(rgb).quantize(100)
    few = Image.fromarray(rgb).quantize(4)
    cmyk = Image.frombytes("CMYK", (w, h), rgba.tobytes())
    la = Image.frombytes("LA", (w, h), noise(6, h, w, 2).tobytes())
    exif = Image.Exif()
    yield "jpeg 444", encoded(Image.fromarray(rgb), "JPEG", subsampling=0, quality=95)
    yield "jpeg 422", encoded(Image.fromarray(rgb), "JPEG", subsampling=1)
    yield "jpeg 420", encoded(Image.fromarray(smooth(301, 203)), "JPEG")
    yield "jpeg progressive", encoded(Image.fromarray(rgb), "JPEG", progressive=True)
    yield "jpeg optimised", encoded(Image.fromarray(rgb), "JPEG", optimize=True)
    yield "jpeg grey", encoded(Image.fromarray(grey), "JPEG")
    yield "jpeg cmyk", encoded(cmyk, "JPEG", quality=95)
    for way in range(1, 9):
        exif[0x0112] = way
        yield f"jpeg turned {way}", encoded(Image.fromarray(smooth(31, 47)), "JPEG", exif=exif)
        yield f"png turned {way}", encoded(Image.fromarray(rgb), "PNG", exif=exif)
        yield f"webp turned {way}", encoded(Image.fromarray(rgb), "WEBP", lossless=True, exif=exif)
    yield "png rgb", encoded(Image.fromarray(rgb), "PNG")
    yield "png rgba", encoded(Image.fromarray(rgba), "PNG")
    yield "png grey", encoded(Image.fromarray(grey), "PNG")
    yield "png grey alpha", encoded(la, "PNG")
    yield "png bilevel", encoded(Image.fromarray(grey).convert("1"), "PNG")
    yield "png bilevel clear", encoded(Image.fromarray(grey).convert("1"), "PNG", transparency=0)
    yield "png 16 bit grey", encoded(Image.fromarray(wide), "PNG")
    yield "png palette", encoded(pal, "PNG")
    yield "png palette 2 bit", encoded(few, "PNG")
    yield "png palette clear", encoded(pal, "PNG", transparency=3)
    yield "png palette alphas", encoded(pal, "PNG", transparency=bytes(range(100)))
    yield "png grey clear", encoded(Image.fromarray(grey), "PNG", transparency=77)
    yield "png rgb clear", encoded(Image.fromarray(rgb // 128 * 128), "PNG", transparency=(128, 0, 128))
    yield "png 16 bit rgb", cv2.imencode(".png", np.random.default_rng(9).integers(
        0, 65536, (h, w, 3)).astype(np.uint16))[1].tobytes()
    yield "png 16 bit rgba", cv2.imencode(".png", np.random.default_rng(9).integers(
        0, 65536, (h, w, 4)).astype(np.uint16))[1].tobytes()
    yield "webp lossy", encoded(Image.fromarray(smooth(99, 77)), "WEBP")
    yield "webp lossless alpha", encoded(Image.fromarray(rgba), "WEBP", lossless=True, exact=True)
    yield "webp lossy alpha", encoded(Image.fromarray(rgba), "WEBP")
    yield "webp animated", encoded(Image.fromarray(rgba), "WEBP", save_all=True, lossless=True,
                                   append_images=[Image.fromarray(255 - rgba)])
    yield "webp animated opaque", encoded(Image.fromarray(rgb), "WEBP", save_all=True,
                                          append_images=[Image.fromarray(255 - rgb)])
    yield "gif", encoded(pal, "GIF")
    yield "gif plain", encoded(pal, "GIF", interlace=0)
    yield "gif grey", encoded(Image.fromarray(grey), "GIF")
    yield "gif clear", encoded(pal, "GIF", transparency=7)
    yield "gif animated", encoded(pal, "GIF", save_all=True, append_images=[few.copy()])
    for name, size, at, clear in (("gif small frame", (90, 80), (9, 5), None),
                                  ("gif small clear frame", (90, 80), (9, 5), 5),
                                  ("gif large frame", (20, 20), (9, 5), None)):
        raw = bytearray(encoded(pal, "GIF", **({} if clear is None else {"transparency": clear})))
        raw[6:10] = np.array(size, "<u2").tobytes()
        comma = raw.index(b"," + bytes(4) + np.array((w, h), "<u2").tobytes())
        raw[comma + 1:comma + 5] = np.array(at, "<u2").tobytes()
        yield name, bytes(raw)


def decoding():
    total = 0
    for name, raw in pictures():
        total += 1
        open(f"{where}/{name.replace(' ', '-')}", "wb").write(raw)
        for mode in ("image", "upright"):
            r = ours(mode, data=raw)
            im = Image.open(io.BytesIO(raw))
            want = on_white(ImageOps.exif_transpose(im) if mode == "upright" else im)
            if r.returncode:
                check(False, f"{name}: {r.stderr.decode().strip()}")
                break
            head, pixels = r.stdout.split(b"\n", 1)
            check(head == b"%d %d" % want.size, f"{name} ({mode}): {head} for {want.size}")
            wrong = np.frombuffer(pixels, np.uint8).astype(int) - \
                np.asarray(want).reshape(-1) if len(pixels) == 3 * want.size[0] * want.size[1] else None
            check(wrong is not None and not wrong.any(),
                  f"{name} ({mode}): differs" + ("" if wrong is None else
                  f" in {np.count_nonzero(wrong)} of {wrong.size} values, at most {abs(wrong).max()}"))
    print(f"pictures read: {total} files, pixels equal Pillow's except where FAILED says so")


def refusals():
    for name, raw in pictures():
        for n in (5, 13, 20, 40, len(raw) // 2, len(raw) - 2 if name.startswith("jpeg") else 6):
            r = ours("upright", data=raw[:n])
            check(r.returncode in (0, 1), f"{name} cut to {n}: status {r.returncode}")
            check(r.returncode == 1, f"{name} cut to {n} bytes of {len(raw)} is accepted")


def probe(path):
    r = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json",
                        path], capture_output=True)
    return json.loads(r.stdout)["streams"], r.stderr.decode()


def intra():
    """Noise makes every frame one of its own; a scene that stands still shows the distance."""
    rgb = np.repeat(smooth(128, 160)[None], 40, axis=0)
    path = where + "/still.mp4"
    open(path, "wb").write(ours("mp4", 160, 128, 40, data=rgb.tobytes()).stdout)
    kinds = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "frame=pict_type", "-of",
                            "csv=p=0", path], capture_output=True).stdout.decode().split()
    check([i for i, k in enumerate(kinds) if k[0] == "I"] == [0, 12, 24, 36], f"intra frames {kinds}")


def videos():
    for height, width, frames in [(720, 1280, 16), (256, 256, 1), (256, 256, 2), (255, 257, 30),
                                  (2, 2, 3), (64, 48, 100), (3, 1921, 5), (720, 1280, 1)]:
        rgb = noise(0, frames, height, width, 3)
        name = f"mp4 {height}x{width}, {frames} frames"
        path = f"{where}/{height}x{width}x{frames}.mp4"
        first = ours("mp4", width, height, frames, data=rgb.tobytes())
        if first.returncode:
            check(False, f"{name}: {first.stderr.decode()}")
            continue
        check(first.stdout == ours("mp4", width, height, frames, data=rgb.tobytes()).stdout,
              name + ": two runs differ")
        open(path, "wb").write(first.stdout)
        streams, text = probe(path)
        s = streams[0]
        check(len(streams) == 1 and text == "", f"{name}: {text}")
        check((s["width"], s["height"]) == (width & ~1, height & ~1), name + ": size")
        check(int(s["nb_read_frames"]) == frames == int(s["nb_frames"]), name + ": frames")
        check(s["r_frame_rate"] == s["avg_frame_rate"] == "30/1", f"{name}: rate {s['avg_frame_rate']}")
        check(s["codec_name"] == "mpeg4" and s["codec_tag_string"] == "mp4v", name + ": codec")
        check(s["pix_fmt"] == "yuv420p", name + ": pixels")
        cap, seen = cv2.VideoCapture(path), []
        check(cap.isOpened() and int(cap.get(cv2.CAP_PROP_FRAME_COUNT)) == frames and
              cap.get(cv2.CAP_PROP_FPS) == 30, name + ": OpenCV's count or rate")
        while True:
            ok, frame = cap.read()
            if not ok:
                break
            seen.append(frame)
        check(len(seen) == frames and seen[0].shape == (height & ~1, width & ~1, 3), name + ": OpenCV")
        cap.release()
        other = path.replace(".mp4", "-cv.mp4")
        out = cv2.VideoWriter(other, cv2.VideoWriter_fourcc(*"mp4v"), 30, (width, height))
        for f in rgb:
            out.write(cv2.cvtColor(f, cv2.COLOR_RGB2BGR))
        out.release()
        theirs, cap = [], cv2.VideoCapture(other)
        for _ in range(frames):
            ok, frame = cap.read()
            if ok:
                theirs.append(frame)
        cap.release()
        n = len(open(other, "rb").read())
        apart = [np.abs(a.astype(int) - b).mean() for a, b in zip(seen, theirs)]
        print(f"{name}: {len(first.stdout)} bytes, OpenCV's {n}; "
              f"decoded frames differ by {max(apart):.3f} of 255 on average")
        check(abs(len(first.stdout) - n) <= 0.02 * n + 512, name + ": not about as large as OpenCV's")


def sounds():
    rng = np.random.default_rng(1)
    same = 0
    for rate, channels, frames in [(16000, 1, 16000), (44100, 2, 12345), (8000, 6, 10), (48000, 1, 0),
                                   (16000, 1, 7)]:
        x = (rng.standard_normal((frames, channels)) * 0.6).astype(np.float32)
        if frames > 9:
            x[:7, 0] = [1, -1, 1.5, -7, 0.99999, -0.99999, 1 / 65536]
        mine = ours("wav", rate, channels, data=x.tobytes()).stdout
        for kind in (np.float32, np.float64):
            b = io.BytesIO()
            soundfile.write(b, x.astype(kind), rate, format="WAV", subtype="PCM_16")
            same += mine == b.getvalue()
            check(mine == b.getvalue(), f"wav {rate} {channels} {frames} from {kind.__name__}: "
                  f"{len(mine)} bytes for {len(b.getvalue())}")
        if frames < 100:
            continue
        for form, sub in [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAV", "PCM_U8"),
                          ("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
                          ("MP3", "MPEG_LAYER_III")]:
            if sub == "OPUS" and rate == 44100:
                continue
            b = io.BytesIO()
            soundfile.write(b, x, rate, format=form, subtype=sub)
            raw = b.getvalue()
            open(f"{where}/{rate}-{channels}-{sub}.{form.lower()}", "wb").write(raw)
            r, name = ours("audio", data=raw), f"{form} {sub} {rate} {channels}"
            if r.returncode:
                check(False, f"{name}: {r.stderr.decode().strip()}")
                continue
            head, samples = r.stdout.split(b"\n", 1)
            want, _ = soundfile.read(io.BytesIO(raw), dtype="float32", always_2d=True)
            got = np.frombuffer(samples, np.float32).reshape(-1, channels)
            check(head == b"%d %d %d" % (len(want), channels, rate), f"{name}: {head}, {want.shape}")
            apart = np.abs(got - want).max() if got.shape == want.shape else 9
            check(apart <= (1e-3 if form in ("OGG", "MP3") else 0), f"{name}: apart by {apart}")
            s = float(ours("seconds", data=raw).stdout)
            check(s == len(want) / rate, f"{name}: {s} seconds for {len(want) / rate}")
            for n in (3, 20, 60, len(raw) // 2):
                r = ours("audio", data=raw[:n])
                check(r.returncode in (0, 1), f"{name} cut to {n}: status {r.returncode}")
    print(f"WAV written: {same} of 10 equal soundfile's to the byte")


for part in (jpegs, pngs, decoding, refusals, videos, intra, sounds):
    part()
print("failed:", failed)
sys.exit(failed > 0)
