/* SPDX-License-Identifier: Apache-2.0 */
/*
 * video.c - see video.h; FFmpeg's own encoder of MPEG-4 Part 2, with OpenCV's settings.
 *
 * One thread per file and "bit exact" everywhere: the same frames give the same bytes.
 *
 * The library is loaded when the first video is made: it loads more than a hundred others, which
 * would take most of the time that any command needs to start.
 */
#include "input/media/video.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <limits.h>

#include "core/base/library.h"

#define LIBRARY_FILE "libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR)
#define KEY_FRAME_EVERY 12
#define QUANTISER_MIN 3     /* finer ones make the rate control underrun */
#define IO_BYTES 65536

/* The functions in use; libavcodec and libavutil are found through libavformat. */
#define VIDEO_CALLS(X) X(av_frame_alloc) X(av_frame_free) X(av_frame_get_buffer) \
	X(av_frame_make_writable) X(av_free) X(av_freep) X(av_interleaved_write_frame) \
	X(av_log_set_level) X(av_malloc) X(av_packet_alloc) X(av_packet_free) \
	X(av_packet_rescale_ts) X(av_strerror) X(av_write_trailer) X(avcodec_alloc_context3) \
	X(avcodec_find_encoder) X(avcodec_free_context) X(avcodec_open2) \
	X(avcodec_parameters_from_context) X(avcodec_receive_packet) X(avcodec_send_frame) \
	X(avformat_alloc_output_context2) X(avformat_free_context) X(avformat_new_stream) \
	X(avformat_write_header) X(avio_alloc_context) X(avio_context_free)

LIBRARY(lib, VIDEO_CALLS, LIBRARY_FILE, "libavformat59");

/* A file in memory that the library writes to and seeks in. */
struct video_place {
	struct buf *out;
	size_t base, at; /* what out held before; the next byte counts from there */
};

struct video_work {
	struct video_place place;
	AVFormatContext *file;
	AVIOContext *io;
	AVStream *stream;
	AVCodecContext *codec;
	AVFrame *frame;
	AVPacket *packet;
};

static int place_write(void *self, uint8_t *from, int count)
{
	struct video_place *p = self;
	size_t n = (size_t)count, size = p->out->len - p->base;
	size_t over = n < size - p->at ? n : size - p->at;

	if (over)
		memcpy(p->out->data + p->base + p->at, from, over);
	buf_add(p->out, from + over, n - over);
	if (p->out->is_over)
		return AVERROR(ENOMEM);
	p->at += n;
	return count;
}

static int64_t place_seek(void *self, int64_t offset, int whence)
{
	struct video_place *p = self;
	int64_t size = (int64_t)(p->out->len - p->base);

	if (whence & AVSEEK_SIZE)
		return size;
	if (whence == SEEK_CUR)
		offset += (int64_t)p->at;
	else if (whence == SEEK_END)
		offset += size;
	if (offset < 0 || offset > size)
		return AVERROR(EINVAL);
	p->at = (size_t)offset;
	return offset;
}

static int open_codec(struct video_work *w, int width, int height)
{
	const AVCodec *mpeg4 = lib.avcodec_find_encoder(AV_CODEC_ID_MPEG4);
	/* OpenCV asks for a bit a pixel and then adds half of that twice. */
	int64_t rate = (int64_t)VIDEO_FRAMES_PER_SECOND * width * height;
	AVCodecContext *c = mpeg4 ? lib.avcodec_alloc_context3(mpeg4) : NULL;

	w->codec = c;
	if (!c)
		return AVERROR_ENCODER_NOT_FOUND;
	rate = 2 * (rate < INT_MAX / 2 ? rate : INT_MAX / 2);
	c->codec_tag = MKTAG('m', 'p', '4', 'v');
	c->width = width;
	c->height = height;
	c->pix_fmt = AV_PIX_FMT_YUV420P;
	c->time_base = (AVRational){ 1, VIDEO_FRAMES_PER_SECOND };
	c->framerate = (AVRational){ VIDEO_FRAMES_PER_SECOND, 1 };
	c->gop_size = KEY_FRAME_EVERY;
	c->qmin = QUANTISER_MIN;
	c->bit_rate = rate;
	c->bit_rate_tolerance = (int)rate;
	c->thread_count = 1;
	c->dct_algo = FF_DCT_INT;
	c->idct_algo = FF_IDCT_SIMPLE;
	c->flags |= AV_CODEC_FLAG_BITEXACT;
	if (w->file->oformat->flags & AVFMT_GLOBALHEADER)
		c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
	return lib.avcodec_open2(c, mpeg4, NULL);
}

static AVFrame *new_frame(int width, int height)
{
	AVFrame *f = lib.av_frame_alloc();

	if (!f)
		return NULL;
	f->format = AV_PIX_FMT_YUV420P;
	f->width = width;
	f->height = height;
	if (lib.av_frame_get_buffer(f, 0) < 0)
		lib.av_frame_free(&f);
	return f;
}

static int open_file(struct video_work *w, int width, int height)
{
	uint8_t *room;
	int status = lib.avformat_alloc_output_context2(&w->file, NULL, "mp4", NULL);

	if (status < 0)
		return status;
	status = open_codec(w, width, height);
	if (status < 0)
		return status;
	room = lib.av_malloc(IO_BYTES);
	w->io = lib.avio_alloc_context(room, IO_BYTES, 1, &w->place, NULL, place_write, place_seek);
	if (!w->io)
		lib.av_free(room);
	w->file->pb = w->io;
	w->file->flags |= AVFMT_FLAG_BITEXACT;
	w->stream = lib.avformat_new_stream(w->file, NULL);
	w->frame = new_frame(width, height);
	w->packet = lib.av_packet_alloc();
	if (!w->io || !w->stream || !w->frame || !w->packet)
		return AVERROR(ENOMEM);
	w->stream->time_base = w->codec->time_base;
	w->stream->avg_frame_rate = w->codec->framerate;
	status = lib.avcodec_parameters_from_context(w->stream->codecpar, w->codec);
	return status < 0 ? status : lib.avformat_write_header(w->file, NULL);
}

/* One frame in (NULL: no more), the packets that are ready out. */
static int encode(struct video_work *w, const AVFrame *frame)
{
	int status = lib.avcodec_send_frame(w->codec, frame);

	while (status >= 0) {
		status = lib.avcodec_receive_packet(w->codec, w->packet);
		if (status == AVERROR(EAGAIN) || status == AVERROR_EOF)
			return 0;
		if (status < 0)
			return status;
		w->packet->duration = 1;
		lib.av_packet_rescale_ts(w->packet, w->codec->time_base, w->stream->time_base);
		w->packet->stream_index = w->stream->index;
		status = lib.av_interleaved_write_frame(w->file, w->packet);
	}
	return status;
}

/*
 * BT.601, 16 to 235, one chroma value for four pixels. Computed here, as a library's results depend
 * on its version and the processor.
 */
static void put_pair(AVFrame *f, size_t y, const uint8_t *top, const uint8_t *bottom)
{
	uint8_t *luma[] = { f->data[0] + y * (size_t)f->linesize[0],
			    f->data[0] + (y + 1) * (size_t)f->linesize[0] };
	uint8_t *blue = f->data[1] + y / 2 * (size_t)f->linesize[1];
	uint8_t *red = f->data[2] + y / 2 * (size_t)f->linesize[2];

	for (size_t x = 0; x < (size_t)f->width; x += 2, top += 6, bottom += 6) {
		const uint8_t *const pixel[] = { top, top + 3, bottom, bottom + 3 };
		int r = 0, g = 0, b = 0;

		for (unsigned i = 0; i < 4; i++) {
			const uint8_t *p = pixel[i];

			luma[i / 2][x + i % 2] =
				(uint8_t)(((8414 * p[0] + 16519 * p[1] + 3208 * p[2]) >> 15) + 16);
			r += p[0];
			g += p[1];
			b += p[2];
		}
		*blue++ = (uint8_t)(((-4856 * r - 9535 * g + 14391 * b) >> 17) + 128);
		*red++ = (uint8_t)(((14391 * r - 12051 * g - 2340 * b) >> 17) + 128);
	}
}

static int write_frames(struct video_work *w, const uint8_t *rgb, uint32_t width, uint32_t height,
			uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++, rgb += (size_t)3 * width * height) {
		int status = lib.av_frame_make_writable(w->frame);

		if (status < 0)
			return status;
		for (size_t y = 0; y + 1 < height; y += 2)
			put_pair(w->frame, y, rgb + 3 * y * width, rgb + 3 * (y + 1) * width);
		w->frame->pts = i;
		status = encode(w, w->frame);
		if (status < 0)
			return status;
	}
	return encode(w, NULL);
}

static void release(struct video_work *w)
{
	lib.av_packet_free(&w->packet);
	lib.av_frame_free(&w->frame);
	lib.avcodec_free_context(&w->codec);
	lib.avformat_free_context(w->file);
	if (w->io)
		lib.av_freep(&w->io->buffer);
	lib.avio_context_free(&w->io);
}

int video_mp4(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t frames,
	      struct buf *out, struct err *e)
{
	struct video_work w = { .place = { .out = out, .base = out->len } };
	char text[AV_ERROR_MAX_STRING_SIZE];
	int status;

	if (width < 2 || height < 2 || width > VIDEO_SIDE_MAX || height > VIDEO_SIDE_MAX ||
	    frames == 0)
		return err_set(e, ERR_RUN, "a video of %u x %u pixels and %u frames cannot be made;"
			" sides are 2 to %u", width, height, frames, VIDEO_SIDE_MAX);
	if (library_open(&lib_library, e) < 0)
		return -1;
	lib.av_log_set_level(AV_LOG_QUIET);
	status = open_file(&w, (int)(width & ~1u), (int)(height & ~1u));
	if (status >= 0)
		status = write_frames(&w, rgb, width, height, frames);
	if (status >= 0)
		status = lib.av_write_trailer(w.file);
	release(&w);
	if (status >= 0 && !out->is_over)
		return 0;
	lib.av_strerror(status, text, sizeof text);
	return err_set(e, out->is_over ? ERR_LIMIT : ERR_RUN, "a video of %u x %u pixels and %u frames"
		" cannot be made: %s", width, height, frames, out->is_over ? "it is too long" : text);
}
