/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - see digest.h; the one file that includes libcrypto's digests. */
#include "base/digest.h"

#include <assert.h>
#include <openssl/evp.h>

size_t digest(enum digest_kind kind, struct str head, struct str bytes, uint8_t out[DIGEST_BYTES])
{
	const EVP_MD *type = kind == DIGEST_SHA1 ? EVP_sha1() : EVP_sha256();
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned n = 0;
	int is_good = context && EVP_DigestInit_ex(context, type, NULL) &&
		EVP_DigestUpdate(context, head.p, head.n) &&
		EVP_DigestUpdate(context, bytes.p, bytes.n) &&
		EVP_DigestFinal_ex(context, out, &n);

	assert(is_good && n <= DIGEST_BYTES);
	(void)is_good;
	EVP_MD_CTX_free(context);
	return n;
}

char *digest_hex(enum digest_kind kind, struct str bytes, char out[DIGEST_HEX])
{
	static const char digit[] = "0123456789abcdef";
	uint8_t hash[DIGEST_BYTES];
	size_t n = digest(kind, STR(""), bytes, hash);

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digit[hash[i] >> 4];
		out[2 * i + 1] = digit[hash[i] & 15];
	}
	out[2 * n] = 0;
	return out;
}
