/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_hash.c - whether a file's bytes are those that its ETag names.
 *
 * The ETag of a large file is its SHA-256; of a file in git, git's id: the SHA-1 of
 * "blob ", the size, a NUL and the bytes; mirrors give the SHA-1 of the bytes alone, too. Names of
 * values are those of FIPS 180-4.
 */
#include "base/file.h"
#include "base/sha256.h"
#include "fetch/hub_parts.h"

#define BLOCK 64
#define SHA1_BYTES 20

struct sha1 {
	uint32_t hash[5];
	uint8_t rest[BLOCK]; /* what is no whole block yet: bytes % BLOCK */
	uint64_t bytes;
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static void add_block(uint32_t hash[5], const uint8_t *p)
{
	static const uint32_t k[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t w[80], a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4];

	for (size_t t = 0; t < 16; t++, p += 4)
		w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (size_t t = 16; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (size_t t = 0; t < 80; t++) {
		uint32_t f = t < 20 ? (b & c) ^ (~b & d) :
			t >= 40 && t < 60 ? (b & c) ^ (b & d) ^ (c & d) : b ^ c ^ d;
		uint32_t sum = rotate(a, 5) + f + e + k[t / 20] + w[t];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = sum;
	}
	hash[0] += a;
	hash[1] += b;
	hash[2] += c;
	hash[3] += d;
	hash[4] += e;
}

static void sha1_add(struct sha1 *s, struct str bytes)
{
	size_t have = s->bytes % BLOCK;

	s->bytes += bytes.n;
	while (have + bytes.n >= BLOCK) {
		const size_t n = BLOCK - have;

		if (have)
			memcpy(s->rest + have, bytes.p, n);
		add_block(s->hash, have ? s->rest : (const uint8_t *)bytes.p);
		bytes = (struct str){ bytes.p + n, bytes.n - n };
		have = 0;
	}
	if (bytes.n)
		memcpy(s->rest + have, bytes.p, bytes.n);
}

/* Of head and bytes together. */
static void sha1(struct str head, struct str bytes, uint8_t out[SHA1_BYTES])
{
	struct sha1 s = { .hash = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
	const uint64_t bits = (head.n + bytes.n) * 8;
	uint8_t last[BLOCK + 8] = { 0x80 };
	size_t n;

	sha1_add(&s, head);
	sha1_add(&s, bytes);
	/* A one and zeros, so that eight bytes are missing to a whole block. */
	n = 1 + (2 * BLOCK - 9 - s.bytes % BLOCK) % BLOCK;
	for (size_t i = 0; i < 8; i++)
		last[n + i] = (uint8_t)(bits >> (56 - 8 * i));
	sha1_add(&s, (struct str){ (const char *)last, n + 8 });
	for (size_t i = 0; i < SHA1_BYTES; i++)
		out[i] = (uint8_t)(s.hash[i / 4] >> (24 - 8 * (i % 4)));
}

static bool is_hash(const uint8_t *hash, size_t n, const char *etag)
{
	for (size_t i = 0; i < n; i++)
		if (str_hex(etag[2 * i]) != hash[i] >> 4 ||
			str_hex(etag[2 * i + 1]) != (hash[i] & 15))
			return false;
	return true;
}

static bool is_named(struct str bytes, const char *etag)
{
	uint8_t hash[SHA256_BYTES];
	char head[32];
	int n = snprintf(head, sizeof(head), "blob %zu", bytes.n);

	if (strlen(etag) == 2 * SHA256_BYTES) {
		sha256(bytes, hash);
		return is_hash(hash, SHA256_BYTES, etag);
	}
	sha1((struct str){ head, (size_t)n + 1 }, bytes, hash);
	if (is_hash(hash, SHA1_BYTES, etag))
		return true;
	sha1(STR(""), bytes, hash);
	return is_hash(hash, SHA1_BYTES, etag);
}

int hub_check(const char *path, const char *etag, struct err *e)
{
	size_t digits = strspn(etag, "0123456789abcdefABCDEF");
	struct str bytes;
	bool is_same;

	if (etag[digits] || (digits != 2 * SHA1_BYTES && digits != 2 * SHA256_BYTES))
		return 0;
	if (file_map(path, &bytes, e))
		return -1;
	is_same = is_named(bytes, etag);
	file_unmap(bytes);
	if (is_same)
		return 0;
	return err_set(e, ERR_NET, "its bytes are not those the hub announced (hash %s)", etag);
}
