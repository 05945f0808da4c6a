/* SPDX-License-Identifier: Apache-2.0 */
/* redact_names.c - see redact.h: which names are those of secrets, as tables of words. */
#include <ctype.h>

#include "base/redact.h"

#define WORDS_MAX 16
#define N(list) (sizeof(list) / sizeof(*(list)))

struct name {
	struct str word[WORDS_MAX]; /* the last ones, if there are more */
	size_t n;
};

/* Secret wherever they stand, alone or as the end of a word: "MYSQL_ROOT_PASSWORD", "dbpassword". */
static const char *const anywhere[] = {
	"password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential",
	"credentials", "authorization", "cookie", "cookies", "apikey", "apikeys", "accesskey",
	"secretkey", "privatekey", "authkey", "sharedkey", "accountkey", "signingkey", "sshpass",
};
/* Secret as the last word. */
static const char *const last[] = {
	"signature", "sig", "sas", "session", "sessionid", "jwt", "bearer", "auth", "creds", "cred",
};
/* A first word that asks whether: "allow_credentials". */
static const char *const asks[] = { "allow", "is", "has", "enable", "disable", "require", "requires" };
/* A last word that says it is something about the secret: "password_file", "token_count". */
static const char *const about[] = {
	"file", "path", "dir", "folder", "name", "type", "kind", "format", "length", "len", "size",
	"count", "counts", "limit", "ttl", "expiry", "expires", "timeout", "prefix", "required",
	"enabled", "policy", "env", "variable", "field", "algorithm", "version", "free", "ids",
};
/* What a token is that counts text: "stop_token", "time_to_first_token". */
static const char *const tokens_of[] = {
	"max", "min", "num", "per", "stop", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "eot",
	"special", "image", "audio", "video", "first", "last", "next", "previous", "each", "every",
	"by", "of", "to", "in", "out", "one", "a", "the", "start", "end", "begin", "decode", "prompt",
	"prefill", "output", "input", "completion", "reasoning", "think", "thinking", "tool", "bad",
	"draft", "accepted", "new", "single", "sampled", "generated", "text", "byte", "inter",
};
/* What a key is that finds something: "cache_key", "sort_key". */
static const char *const keys_of[] = {
	"cache", "sort", "primary", "partition", "foreign", "group", "prompt", "salt", "routing",
	"route", "index", "public", "dict", "map", "lookup", "hash", "object", "json", "row",
	"column", "field", "header", "metric", "trace", "name", "id", "idempotency", "order",
	"config", "result", "section", "state", "weight", "tensor", "query", "head", "kv", "num",
	"per", "by", "first", "last", "any", "each", "no", "sla", "label", "unique", "shard",
	"correlation", "run", "data", "message", "event", "option", "variable", "parameter",
	"document", "default", "missing", "unknown", "of", "the", "a",
	"client", /* our --client-key is a file */
};
static const char *const keys[] = { "api", "access", "private", "secret", "auth", "ssh" };
static const char *const passes[] = { "db", "user", "admin", "root", "ssh", "smtp", "proxy", "http",
				      "mysql", "pg", "postgres", "redis", "hub", "my", "login" };
static const char *const forges[] = { "github", "gh", "gitlab", "gl", "azure", "devops" };

/* Headers whose values say how to read a message and not who sent it. */
static const char *const harmless_headers[] = {
	"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control",
	"connection", "content-encoding", "content-length", "content-type", "date", "expect",
	"host", "pragma", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
};

static bool is_among(struct str word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(word, str_of(list[i])))
			return true;
	return false;
}

static bool ends_with(struct str word, const char *end)
{
	size_t n = strlen(end);

	return word.n >= n && str_eq_nocase((struct str){ word.p + word.n - n, n }, str_of(end));
}

static bool is_digits(struct str word)
{
	for (size_t i = 0; i < word.n; i++)
		if (!isdigit((unsigned char)word.p[i]))
			return false;
	return true;
}

static void add_word(struct name *name, struct str word)
{
	if (name->n == WORDS_MAX)
		memmove(name->word, name->word + 1, --name->n * sizeof(*name->word));
	name->word[name->n++] = word;
}

/* "X-Api-Key", "apiKey", "API_KEY": words of letters and digits, a capital begins another. */
static struct name words_of(struct str s)
{
	struct name name = { .n = 0 };
	size_t at = 0;

	while (at < s.n) {
		size_t end = at;

		while (end < s.n && isalnum((unsigned char)s.p[end]) &&
		       (end == at || !isupper((unsigned char)s.p[end]) ||
			!islower((unsigned char)s.p[end - 1])))
			end++;
		if (end > at)
			add_word(&name, (struct str){ s.p + at, end - at });
		at = end > at ? end : end + 1;
	}
	while (name.n && is_digits(name.word[name.n - 1]))
		name.n--;
	if (name.n) {
		struct str *word = &name.word[name.n - 1];

		while (isdigit((unsigned char)word->p[word->n - 1]))
			word->n--;
	}
	return name;
}

static bool is_secret_pair(struct str before, struct str word)
{
	if (str_eq_nocase(word, STR("key")))
		return !is_among(before, keys_of, N(keys_of));
	if (str_eq_nocase(word, STR("keys")))
		return is_among(before, keys, N(keys));
	if (str_eq_nocase(word, STR("token")))
		return !is_among(before, tokens_of, N(tokens_of));
	if (str_eq_nocase(word, STR("pass")))
		return is_among(before, passes, N(passes));
	if (str_eq_nocase(word, STR("pat")))
		return is_among(before, forges, N(forges));
	return str_eq_nocase(word, STR("pwd")) ||
	       (str_eq_nocase(word, STR("id")) && str_eq_nocase(before, STR("session")));
}

bool redact_is_secret(struct str text)
{
	struct name name = words_of(text);
	struct str word;

	if (name.n == 0)
		return false;
	word = name.word[name.n - 1];
	if (name.n > 1 && (is_among(word, about, N(about)) ||
			   is_among(name.word[0], asks, N(asks))))
		return false;
	for (size_t i = 0; i < name.n; i++) {
		for (size_t k = 0; k < N(anywhere); k++)
			if (ends_with(name.word[i], anywhere[k]))
				return true;
		/* "AWS_ACCESS_KEY_ID" */
		if (i && str_eq_nocase(name.word[i], STR("key")) &&
		    is_among(name.word[i - 1], keys, N(keys)))
			return true;
	}
	if (is_among(word, last, N(last)))
		return true;
	if (name.n > 1 && is_secret_pair(name.word[name.n - 2], word))
		return true;
	return ends_with(word, "token") && (name.n == 1 || word.n > strlen("token"));
}

bool redact_is_secret_header(struct str name)
{
	return !is_among(str_trim(name), harmless_headers, N(harmless_headers));
}
