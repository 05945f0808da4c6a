/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_hash.c - whether a file's bytes are those that its ETag names.
 *
 * The ETag of a large file is its SHA-256; of a file in git, git's id: the SHA-1 of
 * "blob ", the size, a NUL and the bytes; mirrors give the SHA-1 of the bytes alone, too.
 */
#include "core/base/codec.h"
#include "core/base/file.h"
#include "input/fetch/hub_parts.h"

static bool is_digest(enum digest_kind kind, struct str head, struct str bytes, const char *etag)
{
	uint8_t hash[DIGEST_BYTES] = { 0 };
	size_t n = digest(kind, head, bytes, hash);

	for (size_t i = 0; i < n; i++)
		if (str_hex(etag[2 * i]) != hash[i] >> 4 ||
			str_hex(etag[2 * i + 1]) != (hash[i] & 15))
			return false;
	return true;
}

static bool is_named(struct str bytes, const char *etag)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "blob %zu", bytes.n);

	if (strlen(etag) == 2 * DIGEST_BYTES)
		return is_digest(DIGEST_SHA256, STR(""), bytes, etag);
	return is_digest(DIGEST_SHA1, (struct str){ head, (size_t)n + 1 }, bytes, etag) ||
		is_digest(DIGEST_SHA1, STR(""), bytes, etag);
}

int hub_check(const char *path, const char *etag, struct err *e)
{
	size_t digits = strspn(etag, "0123456789abcdefABCDEF");
	struct str bytes;
	bool is_same;

	if (etag[digits] || (digits != 2 * DIGEST_SHA1_BYTES && digits != 2 * DIGEST_BYTES))
		return 0;
	if (file_map(path, &bytes, e))
		return -1;
	is_same = is_named(bytes, etag);
	file_unmap(bytes);
	if (is_same)
		return 0;
	return err_set(e, ERR_NET, "its bytes are not those the hub announced (hash %s)", etag);
}
