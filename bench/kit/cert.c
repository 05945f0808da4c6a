/* SPDX-License-Identifier: Apache-2.0 */
/* cert.c - a certificate of 127.0.0.1 that signs itself; see kit.h. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "kit/kit.h"

static int write_pair(const char *dir, EVP_PKEY *key, X509 *cert)
{
	char path[64];
	FILE *f;
	int ok;

	snprintf(path, sizeof(path), "%s/cert.pem", dir);
	f = fopen(path, "we");
	ok = f && PEM_write_X509(f, cert);
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/key.pem", dir);
	f = fopen(path, "we");
	ok = ok && f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	if (f)
		fclose(f);
	return ok ? 0 : -1;
}

int cert_make(const char *dir, struct err *e)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	int ok;

	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1",
				   -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	ok = X509_set_pubkey(cert, key) && X509_sign(cert, key, EVP_sha256()) &&
	     write_pair(dir, key, cert) == 0;
	X509_free(cert);
	EVP_PKEY_free(key);
	return ok ? 0 : err_set(e, ERR_RUN, "cannot make a certificate in %s", dir);
}
