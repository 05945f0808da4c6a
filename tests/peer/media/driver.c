/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - a command line for our media layer, for check.py.
 *
 *   driver jpeg|png W H <rgb >file        driver mp4 W H FRAMES <rgb >file
 *   driver image|upright <file >picture    driver wav RATE CHANNELS <floats >file
 *   driver audio <file >sound             driver seconds <file >text
 *
 * A picture is a line "W H" and RGB; a sound is a line "FRAMES CHANNELS RATE" and floats. What is
 * refused gives status 1 and a sentence on stderr.
 */
#include <stdio.h>
#include <unistd.h>

#include "input/media/audio.h"
#include "input/media/image.h"
#include "input/media/video.h"

static void read_all(struct buf *in)
{
	char block[65536];
	size_t n;

	while ((n = fread(block, 1, sizeof block, stdin)) > 0)
		buf_add(in, block, n);
}

static int picture(struct str file, bool is_upright, struct buf *out, struct err *e)
{
	struct image m;

	if (image_decode(file, is_upright, &m, e) < 0)
		return -1;
	buf_printf(out, "%u %u\n", m.width, m.height);
	buf_add(out, m.rgb, (size_t)3 * m.width * m.height);
	image_release(&m);
	return 0;
}

static int sound(struct str file, struct buf *out, struct err *e)
{
	struct audio a;

	if (audio_decode(file, &a, e) < 0)
		return -1;
	buf_printf(out, "%llu %u %u\n", (unsigned long long)a.frames, a.channels, a.rate);
	buf_add(out, a.sample, a.frames * a.channels * sizeof *a.sample);
	audio_release(&a);
	return 0;
}

static int run(const char *what, const uint32_t *n, struct buf *in, struct buf *out, struct err *e)
{
	struct image m = { n[0], n[1], (uint8_t *)in->data };
	double seconds;

	if (strcmp(what, "jpeg") == 0)
		return image_jpeg(&m, out, e);
	if (strcmp(what, "png") == 0)
		return image_png(&m, out, e);
	if (strcmp(what, "mp4") == 0)
		return video_mp4(m.rgb, n[0], n[1], n[2], out, e);
	if (strcmp(what, "image") == 0)
		return picture(buf_str(in), false, out, e);
	if (strcmp(what, "upright") == 0)
		return picture(buf_str(in), true, out, e);
	if (strcmp(what, "audio") == 0)
		return sound(buf_str(in), out, e);
	if (strcmp(what, "wav") == 0) {
		struct audio a = { (float *)in->data, in->len / sizeof(float) / n[1], n[1], n[0] };

		return audio_wav(&a, out, e);
	}
	if (audio_duration(buf_str(in), &seconds, e) < 0)
		return -1;
	buf_printf(out, "%.17g\n", seconds);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t n[3] = { 0 };
	struct buf in = { 0 }, out = { 0 };
	struct err e = { 0 };
	int status;

	for (int i = 2; i < argc && i < 5; i++)
		n[i - 2] = (uint32_t)strtoul(argv[i], NULL, 10);
	read_all(&in);
	status = run(argc > 1 ? argv[1] : "", n, &in, &out, &e);
	if (status < 0)
		fprintf(stderr, "%s\n", e.text);
	else
		fwrite(out.data, 1, out.len, stdout);
	buf_release(&in);
	buf_release(&out);
	return status < 0;
}
