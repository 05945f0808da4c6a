/* SPDX-License-Identifier: Apache-2.0 */
/*
 * none.c - replaces audio.c, video.c and the decoders in a program built with MEDIA=0, without the
 * headers of their libraries: everything is refused.
 */
#include "input/media/audio.h"
#include "input/media/image.h"
#include "input/media/video.h"

static int refuse(struct err *e, const char *what)
{
	return err_set(e, ERR_USAGE, "%s needs a program with media libraries; this one was built with"
		       " MEDIA=0", what);
}

int jpeg_decode(struct str bytes, struct image *out, struct err *e)
{
	(void)bytes, (void)out;
	return refuse(e, "reading a JPEG file");
}

int png_decode(struct str bytes, struct image *out, struct err *e)
{
	(void)bytes, (void)out;
	return refuse(e, "reading a PNG file");
}

int webp_decode(struct str bytes, struct image *out, struct err *e)
{
	(void)bytes, (void)out;
	return refuse(e, "reading a WebP file");
}

int gif_decode(struct str bytes, struct image *out, struct err *e)
{
	(void)bytes, (void)out;
	return refuse(e, "reading a GIF file");
}

int image_jpeg(const struct image *m, struct buf *out, struct err *e)
{
	(void)m, (void)out;
	return refuse(e, "writing a JPEG file");
}

int image_png(const struct image *m, struct buf *out, struct err *e)
{
	(void)m, (void)out;
	return refuse(e, "writing a PNG file");
}

int audio_decode(struct str bytes, struct audio *out, struct err *e)
{
	(void)bytes, (void)out;
	return refuse(e, "reading an audio file");
}

void audio_release(struct audio *a)
{
	*a = (struct audio){ 0 };
}

int audio_duration(struct str bytes, double *seconds, struct err *e)
{
	(void)bytes, (void)seconds;
	return refuse(e, "reading an audio file");
}

int audio_wav(const struct audio *a, struct buf *out, struct err *e)
{
	(void)a, (void)out;
	return refuse(e, "writing a WAV file");
}

int video_mp4(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t frames, struct buf *out,
	      struct err *e)
{
	(void)rgb, (void)width, (void)height, (void)frames, (void)out;
	return refuse(e, "making a video");
}
