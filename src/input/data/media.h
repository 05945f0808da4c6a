/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media.h - references to media become OpenAI content parts (datasets spec 4.5 to 4.7).
 *
 * A reference is first made a URL (text, not escaped), then put into a list of parts:
 *
 *	struct json_writer w = json_writer(parts);
 *	json_begin_array(&w);
 *	if (media_jpeg_url(bytes, &url, e) == 0)
 *		media_put_url(&w, "image_url", buf_str(&url));
 *	json_end_array(&w);
 *
 * All functions append; none keeps what it is given. For any number of threads. On failure what
 * was appended before stays.
 */
#pragma once
#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "input/media/audio.h"

/* ---- URLs ---- */

/*
 * The bytes of an image file as data:image/jpeg: decoded, turned upright, RGB, quality
 * 75. ERR_PARSE: no image that is read; ERR_LIMIT.
 */
int media_jpeg_url(struct str bytes, struct buf *url, struct err *e);
/* http://, https://, file:// and data:image/ are unchanged; else a path: "file://" is prepended. */
void media_image_url(struct str ref, struct buf *url);
/*
 * Loads ref (path, file:// or http(s)) and converts it to data:image/png; data:image/ is unchanged.
 * The error names ref. cancel may be NULL.
 */
int media_inline_url(struct str ref, const atomic_bool *cancel, struct buf *url, struct err *e);
/* http://, https://, file:// are unchanged; to all else, also data:, "file://" is prepended. */
void media_video_url(struct str ref, struct buf *url);
/* The bytes of an MP4 file, unchanged, as data:video/mp4. */
void media_mp4_url(struct str bytes, struct buf *url);

/* ---- content parts ---- */

/* {"type": kind, kind: {"url": url}}; kind: "image_url" or "video_url". */
void media_put_url(struct json_writer *w, const char *kind, struct str url);
/* {"type": "text", "text": text} */
void media_put_text(struct json_writer *w, struct str text);
/* {"type": "input_audio", "input_audio": {"data": base64 of a WAV file, "format": "wav"}} */
int media_put_audio(struct json_writer *w, const struct audio *a, struct err *e);

/*
 * One user message: [{"role": "user", "content": [text part, parts...]}]. parts: JSON list of
 * content parts; empty: none.
 */
void media_chat(struct str text, struct str parts, struct buf *messages);
