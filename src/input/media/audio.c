/* SPDX-License-Identifier: Apache-2.0 */
/* audio.c - see audio.h; libsndfile over bytes in memory. */
#include "input/media/audio.h"

#include <sndfile.h>
#include <stdlib.h>

#include "core/base/library.h"
#include "core/base/mem.h"

/* The functions in use: the library is loaded when first needed. */
#define SNDFILE_CALLS(X) X(sf_close) X(sf_command) X(sf_error) X(sf_error_number) \
	X(sf_open_virtual) X(sf_readf_float) X(sf_strerror) X(sf_writef_float)
LIBRARY(lib, SNDFILE_CALLS, "libsndfile.so.1", "libsndfile1");

/* Read at a time: the length in a file's header is not trusted. */
#define READ_SAMPLES (1u << 16)

/* Where the library reads or writes; positions count from the beginning of bytes or of out. */
struct audio_place {
	struct str bytes;
	struct buf *out; /* NULL when reading */
	size_t base;     /* what out held before */
	size_t at;
};

static sf_count_t place_size(void *self)
{
	struct audio_place *p = self;

	return (sf_count_t)(p->out ? p->out->len - p->base : p->bytes.n);
}

static sf_count_t place_seek(sf_count_t offset, int whence, void *self)
{
	struct audio_place *p = self;
	sf_count_t size = place_size(p), from = 0, to;

	if (whence == SEEK_CUR)
		from = (sf_count_t)p->at;
	else if (whence == SEEK_END)
		from = size;
	if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > size)
		return -1;
	p->at = (size_t)to;
	return to;
}

static sf_count_t place_read(void *to, sf_count_t n, void *self)
{
	struct audio_place *p = self;
	size_t taken = p->bytes.n - p->at;

	if (n < 0)
		return 0;
	taken = (size_t)n < taken ? (size_t)n : taken;
	if (taken)
		memcpy(to, p->bytes.p + p->at, taken);
	p->at += taken;
	return (sf_count_t)taken;
}

/* The header is written twice: again with lengths once they are known. */
static sf_count_t place_write(const void *from, sf_count_t count, void *self)
{
	struct audio_place *p = self;
	size_t n = (size_t)count, size = p->out->len - p->base;
	size_t over = n < size - p->at ? n : size - p->at;

	if (over)
		memcpy(p->out->data + p->base + p->at, from, over);
	buf_add(p->out, (const char *)from + over, n - over);
	if (p->out->is_over)
		return 0;
	p->at += n;
	return count;
}

static sf_count_t place_tell(void *self)
{
	struct audio_place *p = self;

	return (sf_count_t)p->at;
}

static SF_VIRTUAL_IO hooks = { place_size, place_seek, place_read, place_write, place_tell };

/* The library knows more formats than are useful; their parsers are not exposed. */
static bool is_known(struct str s)
{
	if (s.n < 12)
		return false;
	if (memcmp(s.p, "RIFF", 4) == 0 || memcmp(s.p, "RIFX", 4) == 0 || memcmp(s.p, "RF64", 4) == 0)
		return memcmp(s.p + 8, "WAVE", 4) == 0;
	return memcmp(s.p, "fLaC", 4) == 0 || memcmp(s.p, "OggS", 4) == 0 ||
	       memcmp(s.p, "ID3", 3) == 0 || (s.p[0] == '\xff' && (s.p[1] & 0xe0) == 0xe0);
}

static SNDFILE *open_bytes(struct audio_place *p, SF_INFO *info, struct err *e)
{
	SNDFILE *file;

	*info = (SF_INFO){ 0 };
	if (!is_known(p->bytes)) {
		err_set(e, ERR_PARSE, "%zu bytes that are not a WAV, FLAC, Ogg or MP3 file",
			p->bytes.n);
		return NULL;
	}
	if (library_open(&lib_library, e) < 0)
		return NULL;
	file = lib.sf_open_virtual(&hooks, SFM_READ, info, p);
	if (!file) {
		err_set(e, ERR_PARSE, "damaged or unknown audio file: %s",
			lib.sf_error_number(lib.sf_error(NULL)));
		return NULL;
	}
	if (info->samplerate > 0 && info->channels > 0 && info->frames >= 0)
		return file;
	lib.sf_close(file);
	err_set(e, ERR_PARSE, "damaged audio file: %d samples a second in %d channels",
		info->samplerate, info->channels);
	return NULL;
}

static int read_all(SNDFILE *file, size_t expected, struct audio *a, struct err *e)
{
	size_t chunk = READ_SAMPLES / a->channels, n = 0, cap = 0;
	sf_count_t got;

	if (chunk == 0)
		return err_set(e, ERR_PARSE, "damaged audio file: %u channels", a->channels);
	do {
		if ((n + chunk) * a->channels > AUDIO_SAMPLES_MAX)
			return err_set(e, ERR_LIMIT, "the audio has more than %u samples"
				" (AUDIO_SAMPLES_MAX)", AUDIO_SAMPLES_MAX);
		if (n + chunk > cap) {
			cap = 2 * cap + chunk;
			a->sample = mem_grow(a->sample, cap, a->channels * sizeof *a->sample);
		}
		got = lib.sf_readf_float(file, a->sample + n * a->channels, (sf_count_t)chunk);
		n += got > 0 ? (size_t)got : 0;
	} while (got == (sf_count_t)chunk);
	if (lib.sf_error(file) != SF_ERR_NO_ERROR)
		return err_set(e, ERR_PARSE, "damaged audio file after %zu of %zu frames: %s", n,
			       expected, lib.sf_strerror(file));
	a->sample = mem_grow(a->sample, n ? n : 1, a->channels * sizeof *a->sample);
	a->frames = n;
	return 0;
}

int audio_decode(struct str bytes, struct audio *out, struct err *e)
{
	struct audio_place p = { .bytes = bytes };
	SF_INFO info;
	SNDFILE *file = open_bytes(&p, &info, e);
	int result;

	*out = (struct audio){ 0 };
	if (!file)
		return -1;
	out->channels = (uint32_t)info.channels;
	out->rate = (uint32_t)info.samplerate;
	result = read_all(file, (size_t)info.frames, out, e);
	lib.sf_close(file);
	if (result < 0)
		audio_release(out);
	return result;
}

void audio_release(struct audio *a)
{
	free(a->sample);
	*a = (struct audio){ 0 };
}

int audio_duration(struct str bytes, double *seconds, struct err *e)
{
	struct audio_place p = { .bytes = bytes };
	SF_INFO info;
	SNDFILE *file = open_bytes(&p, &info, e);

	if (!file)
		return -1;
	*seconds = (double)info.frames / info.samplerate;
	lib.sf_close(file);
	return 0;
}

int audio_wav(const struct audio *a, struct buf *out, struct err *e)
{
	struct audio_place p = { .out = out, .base = out->len };
	SF_INFO info = { .samplerate = (int)a->rate, .channels = (int)a->channels,
			 .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16 };
	SNDFILE *file;
	bool ok;

	if (library_open(&lib_library, e) < 0)
		return -1;
	file = lib.sf_open_virtual(&hooks, SFM_WRITE, &info, &p);
	if (!file)
		return err_set(e, ERR_RUN, "%u samples a second in %u channels cannot be a WAV file",
			       a->rate, a->channels);
	lib.sf_command(file, SFC_SET_CLIPPING, NULL, SF_TRUE);
	ok = lib.sf_writef_float(file, a->sample, (sf_count_t)a->frames) == (sf_count_t)a->frames;
	ok = lib.sf_close(file) == 0 && ok && !out->is_over;
	return ok ? 0 : err_set(e, ERR_LIMIT, "%llu frames do not fit into a WAV file of memory",
				(unsigned long long)a->frames);
}
