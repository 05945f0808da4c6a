/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - packets from files; see capture.h. */
#include "client/net/capture_internal.h"

#include <errno.h>
#include <stdio.h>

#include "core/base/mem.h"

#define STAMP_NS_MAX (INT64_MAX / 2) /* the year 2116; differences still fit */
#define INTERFACES_MAX 256  /* of one section of a pcapng file */
#define PCAP_US 0xa1b2c3d4u
#define PCAP_NS 0xa1b23c4du
#define NG_SECTION 0x0a0d0d0au
#define NG_ORDER 0x1a2b3c4du
#define NG_INTERFACE 1
#define NG_SIMPLE 3
#define NG_STATISTICS 5
#define NG_PACKET 6
#define OPTION_TSRESOL 9
#define OPTION_TSOFFSET 14
#define OPTION_IFDROP 5
#define BLOCK_BYTES_MAX (CAPTURE_PACKET_BYTES_MAX + 65536) /* a packet and its options */

enum link {
	LINK_NULL = 0, LINK_ETHERNET = 1, LINK_RAW_BSD = 12, LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101, LINK_LOOP = 108, LINK_COOKED = 113, LINK_IPV4 = 228, LINK_IPV6 = 229,
	LINK_COOKED2 = 276,
};

struct interface {
	uint32_t link;
	int64_t offset_s;
	uint64_t per_s;      /* units of its stamps */
	uint64_t dropped;
};

struct file {
	struct capture base; /* first: its hooks get back to us from it */
	FILE *f;
	char *path;
	bool is_swapped, is_ng;
	struct interface interface[INTERFACES_MAX]; /* of a pcap file: the first */
	unsigned n_interfaces;
	uint64_t dropped;    /* of earlier sections */
	struct buf block;
};

/* ---- numbers and bytes ---- */

static uint16_t u16(const struct file *f, const char *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return f->is_swapped ? __builtin_bswap16(v) : v;
}

static uint32_t u32(const struct file *f, const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return f->is_swapped ? __builtin_bswap32(v) : v;
}

static uint64_t u64(const struct file *f, const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return f->is_swapped ? __builtin_bswap64(v) : v;
}

/* 1: all bytes were read; 0: the file ends before the first; -1: it ends among them. */
static int take(struct file *f, char *to, size_t n, struct err *e)
{
	size_t got = fread(to, 1, n, f->f);

	if (got == n)
		return 1;
	if (ferror(f->f))
		return err_set(e, ERR_IO, "cannot read %s: %s", f->path, strerrordesc_np(errno));
	if (got == 0)
		return 0;
	return err_set(e, ERR_PARSE, "%s ends in the middle of a packet", f->path);
}

/* n bytes more of the current block. */
static int take_block(struct file *f, size_t n, struct err *e)
{
	int rc;

	if (n > BLOCK_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s: one packet has %zu bytes, which is more than the limit "
			       "of %u, or the file is damaged", f->path, n, BLOCK_BYTES_MAX);
	buf_reset(&f->block);
	if (buf_reserve(&f->block, n + 1) < 0)
		return err_set(e, ERR_LIMIT, "%s: a packet is too large", f->path);
	rc = n ? take(f, f->block.data, n, e) : 1;
	if (rc == 0)
		return err_set(e, ERR_PARSE, "%s ends in the middle of a packet", f->path);
	f->block.len = rc > 0 ? n : 0;
	return rc;
}

/* ---- link layers ---- */

static uint16_t be16(const char *p)
{
	return (uint16_t)((uint8_t)p[0] << 8 | (uint8_t)p[1]);
}

static size_t ethernet_head(struct str p)
{
	size_t at = 12;

	while (at + 4 <= p.n && (be16(p.p + at) == 0x8100 || be16(p.p + at) == 0x88a8))
		at += 4;
	return at + 2;
}

/* Bytes in front of the network header; SIZE_MAX: a link that is not known. */
static size_t link_head(uint32_t link, struct str p)
{
	switch (link) {
	case LINK_NULL: case LINK_LOOP: return 4;
	case LINK_ETHERNET: return ethernet_head(p);
	case LINK_RAW: case LINK_RAW_BSD: case LINK_RAW_OPENBSD: case LINK_IPV4: case LINK_IPV6:
		return 0;
	case LINK_COOKED: return 16;
	case LINK_COOKED2: return 20;
	default: return SIZE_MAX;
	}
}

static int check_link(const struct file *f, uint32_t link, struct err *e)
{
	if (link_head(link, (struct str){ 0 }) != SIZE_MAX)
		return 0;
	return err_set(e, ERR_PARSE, "%s is of a network of kind %u, which is not read; Ethernet, Linux "
		       "cooked captures, loopback and raw IP are", f->path, link);
}

static void cut_head(uint32_t link, struct str bytes, size_t wire_bytes,
		     struct capture_packet *out)
{
	size_t head = link_head(link, bytes);

	if (head > bytes.n)
		head = bytes.n;
	out->bytes = (struct str){ bytes.p + head, bytes.n - head };
	out->wire_bytes = wire_bytes > head ? wire_bytes - head : 0;
	if (out->wire_bytes < out->bytes.n)
		out->wire_bytes = out->bytes.n;
}

/* ---- pcap ---- */

static int next_pcap(struct file *f, struct capture_packet *out, struct err *e)
{
	char head[16];
	int rc = take(f, head, sizeof(head), e);
	uint64_t scale = 1000000000 / f->interface[0].per_s;

	if (rc <= 0)
		return rc;
	if (take_block(f, u32(f, head + 8), e) < 0)
		return -1;
	cut_head(f->interface[0].link, buf_str(&f->block), u32(f, head + 12), out);
	out->stamp_ns = (int64_t)u32(f, head) * 1000000000 + (int64_t)(u32(f, head + 4) * scale);
	return 1;
}

static int begin_pcap(struct file *f, uint32_t magic, struct err *e)
{
	char rest[20];

	if (take(f, rest, sizeof(rest), e) <= 0)
		return err_set(e, ERR_PARSE, "%s ends in its first bytes", f->path);
	f->n_interfaces = 1;
	f->interface[0] = (struct interface){
		.link = u32(f, rest + 16) & 0x0fffffff,
		.per_s = magic == PCAP_NS ? 1000000000 : 1000000,
	};
	return check_link(f, f->interface[0].link, e);
}

/* ---- pcapng ---- */

static uint64_t power(uint64_t base, unsigned n)
{
	uint64_t v = 1;

	while (n--)
		v *= base;
	return v;
}

/* The next option of a block; false at their end. */
static bool next_option(const struct file *f, struct str *rest, unsigned *code, struct str *value)
{
	size_t padded;

	if (rest->n < 4 || (*code = u16(f, rest->p)) == 0)
		return false;
	*value = (struct str){ rest->p + 4, u16(f, rest->p + 2) };
	padded = 4 + ((value->n + 3) & ~(size_t)3);
	if (padded > rest->n)
		return false;
	rest->p += padded;
	rest->n -= padded;
	return true;
}

static int ng_interface(struct file *f, struct str body, struct err *e)
{
	struct interface *i = &f->interface[f->n_interfaces];
	struct str rest = { body.p + 8, body.n - 8 }, value;
	unsigned code;

	if (f->n_interfaces == INTERFACES_MAX)
		return err_set(e, ERR_LIMIT, "%s has more than %d interfaces", f->path,
			       INTERFACES_MAX);
	*i = (struct interface){ .link = u16(f, body.p), .per_s = 1000000 };
	while (next_option(f, &rest, &code, &value)) {
		if (code == OPTION_TSRESOL && value.n >= 1) {
			unsigned n = (uint8_t)value.p[0] & 0x7f;

			if (n > ((uint8_t)value.p[0] & 0x80 ? 30 : 9))
				return err_set(e, ERR_PARSE, "%s has time stamps in units that are not "
					       "read (if_tsresol %u)", f->path, (uint8_t)value.p[0]);
			i->per_s = power((uint8_t)value.p[0] & 0x80 ? 2 : 10, n);
		}
		if (code == OPTION_TSOFFSET && value.n >= 8)
			i->offset_s = (int64_t)u64(f, value.p);
	}
	f->n_interfaces++;
	return check_link(f, i->link, e);
}

static void ng_statistics(struct file *f, struct str body)
{
	uint32_t which = u32(f, body.p);
	struct str rest = { body.p + 12, body.n - 12 }, value;
	unsigned code;

	while (which < f->n_interfaces && next_option(f, &rest, &code, &value))
		if (code == OPTION_IFDROP && value.n >= 8)
			f->interface[which].dropped = u64(f, value.p);
}

static int ng_packet(struct file *f, struct str body, struct capture_packet *out, struct err *e)
{
	uint32_t which = u32(f, body.p), kept = u32(f, body.p + 12);
	uint64_t at = (uint64_t)u32(f, body.p + 4) << 32 | u32(f, body.p + 8);
	const struct interface *i;
	__int128 ns;

	if (which >= f->n_interfaces || kept > body.n - 20)
		return err_set(e, ERR_PARSE, "%s is damaged: a packet is longer than its block, or of an "
			       "interface that is not described", f->path);
	i = &f->interface[which];
	cut_head(i->link, (struct str){ body.p + 20, kept }, u32(f, body.p + 16), out);
	ns = (__int128)(at / i->per_s) * 1000000000 + (__int128)i->offset_s * 1000000000 +
	     (__int128)(at % i->per_s) * 1000000000 / i->per_s;
	out->stamp_ns = ns < 0 ? 0 : ns > STAMP_NS_MAX ? STAMP_NS_MAX : (int64_t)ns;
	return 1;
}

/* A section may have another byte order than the one before it. */
static int ng_section(struct file *f, const char *length, uint32_t *bytes, struct err *e)
{
	char magic[4];
	uint32_t v;

	if (take(f, magic, sizeof(magic), e) <= 0)
		return err_set(e, ERR_PARSE, "%s ends in its first bytes", f->path);
	memcpy(&v, magic, sizeof(v));
	if (v != NG_ORDER && v != __builtin_bswap32(NG_ORDER))
		return err_set(e, ERR_PARSE, "%s is damaged: a section of it has no byte order", f->path);
	f->is_swapped = v != NG_ORDER;
	for (unsigned i = 0; i < f->n_interfaces; i++)
		f->dropped += f->interface[i].dropped;
	f->n_interfaces = 0;
	*bytes = u32(f, length);
	return 0;
}

/* Least length of a block of a kind, without its two lengths and its type. */
static size_t body_least(uint32_t type)
{
	return type == NG_PACKET ? 20 : type == NG_STATISTICS ? 12 : type == NG_INTERFACE ? 8 : 0;
}

static int next_ng(struct file *f, struct capture_packet *out, struct err *e)
{
	for (;;) {
		char head[8];
		uint32_t type, bytes;
		struct str body;
		size_t read = sizeof(head);
		int rc = take(f, head, sizeof(head), e);

		if (rc <= 0)
			return rc;
		type = u32(f, head);
		bytes = u32(f, head + 4);
		if (type == NG_SECTION) { /* reads the same in both orders */
			if (ng_section(f, head + 4, &bytes, e) < 0)
				return -1;
			read += 4;
		}
		if (bytes < read + 4 + body_least(type) || bytes % 4)
			return err_set(e, ERR_PARSE, "%s is damaged: a block of it has an impossible "
				       "length", f->path);
		if (take_block(f, bytes - read, e) < 0)
			return -1;
		body = buf_str(&f->block);
		body.n -= 4; /* the length again */
		if (type == NG_PACKET)
			return ng_packet(f, body, out, e);
		if (type == NG_SIMPLE)
			return err_set(e, ERR_PARSE, "%s has packets without time stamps", f->path);
		if (type == NG_INTERFACE && ng_interface(f, body, e) < 0)
			return -1;
		if (type == NG_STATISTICS)
			ng_statistics(f, body);
	}
}

/* ---- the file ---- */

static int file_next(struct capture *base, int wait_ms, struct capture_packet *out,
		     struct err *e)
{
	struct file *f = (struct file *)base;

	(void)wait_ms;
	return f->is_ng ? next_ng(f, out, e) : next_pcap(f, out, e);
}

static uint64_t file_dropped(struct capture *base)
{
	const struct file *f = (struct file *)base;
	uint64_t dropped = f->dropped;

	for (unsigned i = 0; i < f->n_interfaces; i++)
		dropped += f->interface[i].dropped;
	return dropped;
}

static void file_close(struct capture *base)
{
	struct file *f = (struct file *)base;

	if (f->f)
		fclose(f->f);
	buf_release(&f->block);
	free(f->path);
	free(f);
}

static int begin(struct file *f, struct err *e)
{
	char head[8] = { 0 };
	uint32_t magic, swapped, bytes;

	if (take(f, head, 4, e) < 0)
		return -1;
	memcpy(&magic, head, sizeof(magic));
	swapped = __builtin_bswap32(magic);
	f->is_swapped = swapped == PCAP_US || swapped == PCAP_NS;
	if (f->is_swapped)
		magic = swapped;
	if (magic == PCAP_US || magic == PCAP_NS)
		return begin_pcap(f, magic, e);
	if (magic != NG_SECTION)
		return err_set(e, ERR_PARSE, "%s is not a capture: expected a pcap or pcapng file, "
			       "as written by `tcpdump -s 0 -w FILE tcp port N`", f->path);
	f->is_ng = true;
	/* Its first block is read as any other; the type is gone already. */
	if (take(f, head + 4, 4, e) <= 0)
		return err_set(e, ERR_PARSE, "%s ends in its first bytes", f->path);
	if (ng_section(f, head + 4, &bytes, e) < 0)
		return -1;
	if (bytes < 16 || bytes % 4)
		return err_set(e, ERR_PARSE, "%s is damaged: its first block has an impossible length",
			       f->path);
	return take_block(f, bytes - 12, e) < 0 ? -1 : 0;
}

struct capture *capture_open_file(const char *path, struct err *e)
{
	struct file *f = mem_alloc(sizeof(*f));

	f->base = (struct capture){ file_next, file_dropped, file_close };
	f->path = mem_text(path);
	f->f = fopen(path, "re");
	if (!f->f)
		err_set(e, ERR_IO, "cannot open %s: %s", path, strerrordesc_np(errno));
	if (!f->f || begin(f, e) < 0) {
		file_close(&f->base);
		return NULL;
	}
	return &f->base;
}

void capture_close(struct capture *c)
{
	if (c)
		c->close(c);
}

int capture_next(struct capture *c, int wait_ms, struct capture_packet *out, struct err *e)
{
	return c->next(c, wait_ms, out, e);
}

uint64_t capture_dropped(struct capture *c)
{
	return c->dropped(c);
}
