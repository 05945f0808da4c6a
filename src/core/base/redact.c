/* SPDX-License-Identifier: Apache-2.0 */
/* redact.c - see redact.h. */
#include "core/base/redact.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

/* ---- which names are those of secrets ---- */

#define WORDS_MAX 16
#define LOOKS_MAX 4 /* at a text, each after the one before hid something */
#define N(list) (sizeof(list) / sizeof(*(list)))

struct name {
	struct str word[WORDS_MAX]; /* the last ones, if there are more */
	size_t n;
};

/* Secret anywhere in a name, alone or at the end of a word: "MYSQL_ROOT_PASSWORD", "dbpassword". */
static const char *const anywhere[] = {
	"password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential",
	"credentials", "authorization", "cookie", "cookies", "apikey", "apikeys", "accesskey",
	"secretkey", "privatekey", "authkey", "sharedkey", "accountkey", "signingkey", "sshpass",
};
/* Secret as the last word. */
static const char *const last[] = {
	"signature", "sig", "sas", "session", "sessionid", "jwt", "bearer", "auth", "creds", "cred",
};
/* First words of a question: "allow_credentials" is a switch. */
static const char *const asks[] = { "allow", "is", "has", "enable", "disable", "require", "requires" };
/* Last words that only describe the secret: "password_file", "token_count". */
static const char *const about[] = {
	"file", "path", "dir", "folder", "name", "type", "kind", "format", "length", "len", "size",
	"count", "counts", "limit", "ttl", "expiry", "expires", "timeout", "prefix", "required",
	"enabled", "policy", "env", "variable", "field", "algorithm", "version", "free", "ids",
};
/* Words that make a token a unit of text: "stop_token", "time_to_first_token". */
static const char *const tokens_of[] = {
	"max", "min", "num", "per", "stop", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "eot",
	"special", "image", "audio", "video", "first", "last", "next", "previous", "each", "every",
	"by", "of", "to", "in", "out", "one", "a", "the", "start", "end", "begin", "decode", "prompt",
	"prefill", "output", "input", "completion", "reasoning", "think", "thinking", "tool", "bad",
	"draft", "accepted", "new", "single", "sampled", "generated", "text", "byte", "inter",
};
/* Words that make a key a lookup key: "cache_key", "sort_key". */
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

/* Headers that describe the message and not its sender. */
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

/*
 * One pass from left to right that knows no grammar: it stops at quotes, which may be escaped any
 * number of times (JSON within JSON), and at words, and looks at what follows them. So a message
 * that quotes half a configuration is treated like a whole document.
 */

#define LEARNED_BYTES_MIN 8  /* shorter texts appear in others by chance */
#define PLAIN_BYTES_MIN 16   /* the same, for texts of letters of one case */
#define NAME_BYTES_MAX 160
#define QUOTE_DEPTH_MAX 8    /* backslashes before a quote */

/* ---- the register ---- */

static struct {
	pthread_mutex_t lock;
	atomic_size_t n;
	struct str value[REDACT_VALUES_MAX]; /* never changed once n counts it, never released */
} learned = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_telling(struct str s)
{
	bool has_lower = false, has_upper = false, has_other = false;

	if (s.n < LEARNED_BYTES_MIN || memchr(s.p, '\n', s.n))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		has_lower |= islower((unsigned char)s.p[i]) != 0;
		has_upper |= isupper((unsigned char)s.p[i]) != 0;
		has_other |= !isalpha((unsigned char)s.p[i]);
	}
	return s.n >= PLAIN_BYTES_MIN || has_other || (has_lower && has_upper);
}

static void add_value(struct str s)
{
	size_t n = atomic_load(&learned.n);
	bool is_known = !is_telling(s) || n == REDACT_VALUES_MAX;

	for (size_t i = 0; i < n && !is_known; i++)
		is_known = str_eq(learned.value[i], s);
	if (is_known)
		return;
	learned.value[n] = (struct str){ mem_copy(s.p, s.n), s.n };
	atomic_store(&learned.n, n + 1);
}

/* As JSON spells it: with is_back, without the backslashes it has. */
static void respelled(struct str s, bool is_back, struct buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		bool is_special = s.p[i] == '"' || s.p[i] == '\\';

		if (is_back && s.p[i] == '\\' && i + 1 < s.n)
			i++;
		else if (!is_back && is_special)
			buf_add_char(out, '\\');
		buf_add_char(out, s.p[i]);
	}
}

/* URL decoding: %xx becomes the byte it encodes. */
static void decoded(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		bool is_hex = s.p[i] == '%' && i + 2 < s.n && str_hex(s.p[i + 1]) >= 0 &&
			      str_hex(s.p[i + 2]) >= 0;

		buf_add_char(out, is_hex ? (char)(str_hex(s.p[i + 1]) * 16 + str_hex(s.p[i + 2]))
					 : s.p[i]);
		i += is_hex ? 2 : 0;
	}
}

static void learn(struct str value)
{
	struct buf spelled = { 0 };

	pthread_mutex_lock(&learned.lock);
	add_value(value);
	respelled(value, false, &spelled);
	add_value(buf_str(&spelled));
	buf_reset(&spelled);
	respelled(value, true, &spelled);
	add_value(buf_str(&spelled));
	buf_reset(&spelled);
	decoded(value, &spelled);
	add_value(buf_str(&spelled));
	pthread_mutex_unlock(&learned.lock);
	buf_release(&spelled);
}

void redact_learn(struct str value)
{
	struct str rest = str_trim(value);

	if (!rest.n)
		return;
	learn(rest);
	str_cut(&rest, ' '); /* "Bearer abc": what follows the scheme as well */
	if (rest.n)
		learn(str_trim(rest));
}

/* Length of the registered value at position n of text; 0: none. */
static size_t learned_at(struct str text, size_t n)
{
	size_t longest = 0;

	for (size_t i = 0; i < n; i++)
		if (learned.value[i].n > longest && *learned.value[i].p == *text.p &&
		    str_starts(text, learned.value[i]))
			longest = learned.value[i].n;
	return longest;
}

static bool holds_learned(struct str text)
{
	size_t n = atomic_load(&learned.n);

	for (size_t i = 0; i < n; i++)
		if (text.n >= learned.value[i].n &&
		    memmem(text.p, text.n, learned.value[i].p, learned.value[i].n))
			return true;
	return false;
}

static void add_without_learned(struct buf *out, struct str text)
{
	size_t n = atomic_load(&learned.n), plain = 0;
	bool begins[256] = { false };

	for (size_t i = 0; i < n; i++)
		begins[(unsigned char)*learned.value[i].p] = true;
	for (size_t i = 0; i < text.n; i++) {
		struct str rest = { text.p + i, text.n - i };
		size_t length = begins[(unsigned char)text.p[i]] ? learned_at(rest, n) : 0;

		if (!length)
			continue;
		buf_add(out, text.p + plain, i - plain);
		buf_add_text(out, REDACTED);
		i += length - 1;
		plain = i + 1;
	}
	buf_add(out, text.p + plain, text.n - plain);
}

/* ---- where secrets are ---- */

enum list { LIST_NONE, LIST_SECRETS, LIST_HEADERS };

struct secret_finder {
	struct str text;
	size_t at;
	size_t string_at, string_width; /* where the content of the last quote begins, its width */
	size_t string_end;   /* of the last JSON string; secrets inside end inside */
	size_t headers_end;  /* names before it are those of headers */
	enum list list;      /* strings of an array that follow an option */
	bool is_line;        /* NAME=VALUE at the beginning goes to the end */
	bool is_settings;    /* "--name VALUE" is an option and no prose */
	bool is_urls_alone;
	enum { UNKNOWN, YES, NO } is_json; /* the text */
};

struct secret_span {
	size_t at, n;
	bool is_bare;        /* unquoted, but needs quotes to be JSON */
	bool is_learned;     /* its name is secret, or it is a password of a URL */
};

static char char_at(const struct secret_finder *f, size_t i)
{
	return i < f->text.n ? f->text.p[i] : 0;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static size_t skip_blanks(const struct secret_finder *f, size_t i)
{
	while (char_at(f, i) && strchr(" \t\r\n", char_at(f, i)))
		i++;
	return i;
}

/* Length of a quote at i, including its backslashes; 0: none. */
static size_t quote_at(const struct secret_finder *f, size_t i)
{
	size_t n = 0;

	while (n < QUOTE_DEPTH_MAX && char_at(f, i + n) == '\\')
		n++;
	return char_at(f, i + n) == '"' || char_at(f, i + n) == '\'' ? n + 1 : 0;
}

/* Start of the closing quote, for content from i on; the text's end if there is none. */
static size_t string_end(const struct secret_finder *f, size_t i, size_t width)
{
	char quote = f->text.p[i - 1];

	for (size_t k = i, run = 0; k < f->text.n; k++) {
		if (f->text.p[k] == quote && run + 1 >= width &&
		    (run + 1 - width) % (2 * width) == 0)
			return k - (width - 1);
		run = f->text.p[k] == '\\' ? run + 1 : 0;
	}
	return f->text.n;
}

/* End of the array or object that begins at i, ignoring brackets inside quotes. */
static size_t value_end(const struct secret_finder *f, size_t i)
{
	size_t depth = 0;

	while (i < f->text.n) {
		size_t width = quote_at(f, i);

		if (width) {
			i = string_end(f, i + width, width) + width;
			continue;
		}
		if (f->text.p[i] == '[' || f->text.p[i] == '{')
			depth++;
		else if ((f->text.p[i] == ']' || f->text.p[i] == '}') && depth && --depth == 0)
			return i + 1;
		i++;
		if (!depth)
			return i;
	}
	return f->text.n;
}

static struct str slice(const struct secret_finder *f, size_t from, size_t to)
{
	to = to < f->text.n ? to : f->text.n;
	return (struct str){ f->text.p + from, to > from ? to - from : 0 };
}

/* Our own texts have "Authorization=Bearer ..." as an example. */
static bool is_shown(struct str value)
{
	return !value.n || str_is(value, REDACTED) || str_starts(value, STR("...")) ||
	       str_starts(value, STR("Bearer ..."));
}

static bool hide(struct secret_finder *f, size_t from, size_t to, bool is_learned,
		 struct secret_span *out)
{
	struct str value;

	if (from <= f->string_end && to > f->string_end)
		to = f->string_end;
	value = slice(f, from, to);
	f->at = to > f->at ? to : f->at + 1;
	*out = (struct secret_span){ .at = from, .n = value.n, .is_learned = is_learned };
	return !is_shown(value);
}

/* ---- names ---- */

static struct str bare(struct str name)
{
	while (name.n && *name.p == '-')
		name = (struct str){ name.p + 1, name.n - 1 };
	return name;
}

/* "header", "--headers", "benchmark.header", "default_headers": their members are headers. */
static bool is_headers(struct str name)
{
	struct str s = bare(name);

	while (s.n && memchr(s.p, '.', s.n))
		str_cut(&s, '.');
	while (s.n && memchr(s.p, '_', s.n))
		str_cut(&s, '_');
	return str_eq_nocase(s, STR("header")) || str_eq_nocase(s, STR("headers"));
}

/* True for "benchmark.header.X-Team"; *header receives the part after "header.". */
static bool is_below_headers(struct str name, struct str *header)
{
	for (size_t i = name.n; i-- > 0;)
		if (name.p[i] == '.' && is_headers((struct str){ name.p, i })) {
			*header = (struct str){ name.p + i + 1, name.n - i - 1 };
			return true;
		}
	return false;
}

static bool is_hidden(const struct secret_finder *f, struct str name, bool *is_learned)
{
	struct str header = name;
	bool is_header = f->at < f->headers_end || is_below_headers(name, &header);

	*is_learned = redact_is_secret(header);
	return *is_learned || (is_header && redact_is_secret_header(header));
}

/* Headers that logs print as "Name: value". */
static bool is_known_header(struct str name)
{
	static const char *const names[] = {
		"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq_nocase(name, str_of(names[i])))
			return true;
	return false;
}

/* ---- values ---- */

/* A colon before a blank is punctuation. */
static size_t word_end(const struct secret_finder *f, size_t i)
{
	size_t from = i;

	while (i < f->text.n && !strchr(" \t\r\n\"'&;,)]}<>\\", f->text.p[i]))
		i++;
	return i > from && f->text.p[i - 1] == ':' ? i - 1 : i;
}

/* After "NAME=": to the end of the string that NAME begins, of a quoted text, or of the word. */
static bool hide_assigned(struct secret_finder *f, size_t name_at, size_t i, bool is_learned,
			  struct secret_span *out)
{
	static const char *const schemes[] = { "bearer", "basic", "digest", "token", "apikey" };
	size_t width = quote_at(f, i), end;
	struct str word;

	if (f->string_width && name_at == f->string_at)
		return hide(f, i, string_end(f, f->string_at, f->string_width), is_learned, out);
	if (f->is_line && (name_at == 0 || name_at == f->string_at))
		return hide(f, i, f->text.n, is_learned, out);
	if (width)
		return hide(f, i + width, string_end(f, i + width, width), is_learned, out);
	end = word_end(f, i);
	word = slice(f, i, end);
	for (size_t k = 0; k < sizeof(schemes) / sizeof(*schemes); k++)
		if (char_at(f, end) == ' ' && str_eq_nocase(word, str_of(schemes[k]))) {
			end = word_end(f, end + 1);
			break;
		}
	return hide(f, i, end, is_learned, out);
}

/* After "NAME": in quotes and a colon; is_plain: quotes of JSON. Switches are no secrets. */
static bool hide_member(struct secret_finder *f, size_t i, bool is_plain, bool is_learned,
			struct secret_span *out)
{
	size_t width = quote_at(f, i), end;
	struct str word;
	bool is_open = char_at(f, i) == '[' || char_at(f, i) == '{';

	if (width)
		return hide(f, i + width, string_end(f, i + width, width), is_learned, out);
	/* What sticks to an array, "[...]x", is hidden with it. */
	end = word_end(f, is_open ? value_end(f, i) : i);
	word = slice(f, i, end);
	if (str_is(word, "null") || str_is(word, "None") || str_eq_nocase(word, STR("true")) ||
	    str_eq_nocase(word, STR("false")) || str_is(word, "[]") || str_is(word, "{}")) {
		f->at = end;
		return false;
	}
	if (!hide(f, i, end, is_learned && !is_open, out))
		return false;
	out->is_bare = is_plain;
	return true;
}

/* Password and token of "scheme://user:password@host"; i is the position after the slashes. */
static bool hide_userinfo(struct secret_finder *f, struct str scheme, size_t i,
			  struct secret_span *out)
{
	size_t end = i, word = i, at = 0, colon = 0;
	bool is_web = str_starts(scheme, STR("http"));

	while (end < f->text.n && !strchr("/?#", f->text.p[end]) &&
	       !strchr(" \t\r\n\"'<>\\", f->text.p[end]))
		end++;
	for (word = end; word < f->text.n && !strchr(" \t\r\n\"'<>\\", f->text.p[word]); word++)
		;
	for (size_t k = i; k < end; k++) {
		at = f->text.p[k] == '@' ? k : at;
		colon = f->text.p[k] == ':' && !colon ? k : colon;
	}
	/* A slash in a password that is not escaped: "u:pa/ss@host". */
	for (size_t k = end; !at && colon && f->text.p[i] != '[' && k < word; k++)
		if (f->text.p[k] == '@' && !isdigit((unsigned char)f->text.p[colon + 1]))
			at = k;
	f->at = i;
	if (!at)
		return false;
	if (colon && colon + 1 < at)
		return hide(f, colon + 1, at, true, out);
	return is_web || colon ? hide(f, i, at, true, out) : false;
}

/* ---- the pass ---- */

/* Whether a text is made of nothing but JSON's strings, numbers, words and signs. */
static bool is_json(struct str text)
{
	static const char others[] = " \t\r\n,:{}[]+-.0123456789eEtrufalsn";
	bool is_string = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '"')
			is_string = !is_string;
		else if (is_string && c == '\\')
			i++;
		else if (!is_string && !(c && strchr(others, c)))
			return false;
	}
	return !is_string;
}

/*
 * Whether the JSON string around a name ends where its value would begin, as in
 * {"text": "{'api_key':"} or "http://host/?sig=". A quote of other texts need not have a partner.
 */
static bool ends_before(struct secret_finder *f, size_t name, size_t value)
{
	if (name >= f->string_end || value != f->string_end)
		return false;
	if (f->is_json == UNKNOWN)
		f->is_json = is_json(f->text) ? YES : NO;
	return f->is_json == YES;
}

/* A quote at f->at. */
static bool at_quote(struct secret_finder *f, size_t width, struct secret_span *out)
{
	size_t begin = f->at + width, end = begin, next, value;
	struct str name;
	bool is_learned;

	while (end < f->text.n && is_name_char(f->text.p[end]) && end - begin < NAME_BYTES_MAX)
		end++;
	name = slice(f, begin, end);
	if (!name.n || quote_at(f, end) != width ||
	    f->text.p[end + width - 1] != f->text.p[begin - 1]) {
		f->at = f->string_at = begin;
		f->string_width = width;
		if (width == 1 && f->text.p[begin - 1] == '"' && begin > f->string_end)
			f->string_end = string_end(f, begin, width);
		return false;
	}
	next = skip_blanks(f, end + width);
	value = skip_blanks(f, next + 1);
	f->string_width = 0;
	if (ends_before(f, begin, value)) {
		f->at = value;
	} else if (char_at(f, next) == ':' && is_headers(name)) {
		f->headers_end = value_end(f, value);
		f->at = value;
	} else if (char_at(f, next) == ':' && is_hidden(f, name, &is_learned)) {
		return hide_member(f, value, width == 1 && f->text.p[begin - 1] == '"', is_learned,
				   out);
	} else if (char_at(f, next) == ':') {
		f->at = value;
	} else {
		f->at = end + width;
		if (f->is_settings && *name.p == '-' && char_at(f, next) == ',')
			f->list = is_headers(name) ? LIST_HEADERS :
				  redact_is_secret(name) ? LIST_SECRETS : LIST_NONE;
	}
	return false;
}

/* ", "value"" of an array, after an option that takes secrets. */
static bool at_list(struct secret_finder *f, struct secret_span *out)
{
	size_t i = skip_blanks(f, f->at), width, begin, end, equals;

	width = quote_at(f, i);
	if (width && char_at(f, skip_blanks(f, i + width)) == ',') /* the last one's end */
		i = skip_blanks(f, i + width);
	i = char_at(f, i) == ',' ? skip_blanks(f, i + 1) : f->text.n;
	width = quote_at(f, i);
	begin = i + width;
	if (!width || char_at(f, begin) == '-') {
		f->list = LIST_NONE;
		return false;
	}
	end = string_end(f, begin, width);
	for (equals = begin; equals < end && !strchr("=:", f->text.p[equals]); equals++)
		;
	f->at = begin;
	if (f->list == LIST_SECRETS)
		return hide(f, begin, end, true, out);
	if (equals < end && !redact_is_secret_header(slice(f, begin, equals))) {
		f->at = end;
		return false;
	}
	return hide(f, equals < end ? equals + 1 : begin, end,
		    equals == end || redact_is_secret(slice(f, begin, equals)), out);
}

/* A word at f->at. */
static bool at_word(struct secret_finder *f, struct secret_span *out)
{
	size_t begin = f->at, end = begin;
	struct str name, known;
	bool is_learned, is_string;
	char next;

	while (end < f->text.n && is_name_char(f->text.p[end]))
		end++;
	name = slice(f, begin, end);
	next = char_at(f, end);
	if (next == ':' && char_at(f, end + 1) == '/' && char_at(f, end + 2) == '/')
		return hide_userinfo(f, name, end + 3, out);
	f->at = end;
	if (f->is_urls_alone || name.n > NAME_BYTES_MAX)
		return false;
	is_string = begin == f->string_at && (f->string_width || f->is_line);
	if ((next == '=' || next == ':') && ends_before(f, begin, skip_blanks(f, end + 1))) {
		f->at = end;
		return false;
	}
	f->at = begin;
	if (next == '=' && char_at(f, end + 1) != '=') {
		if (is_headers(name) && f->is_line) {
			f->headers_end = f->text.n;
			f->string_at = end + 1;
		} else if (is_hidden(f, name, &is_learned)) {
			return hide_assigned(f, begin, end + 1, is_learned, out);
		}
	} else if (next == ':' && (is_string || f->is_line) && begin < f->headers_end &&
		   is_hidden(f, name, &is_learned)) {
		return hide_assigned(f, begin, skip_blanks(f, end + 1), is_learned, out);
	} else if (next == ':' && is_known_header(name)) {
		size_t value = skip_blanks(f, end + 1), stop = value;

		while (stop < f->text.n && !strchr("\r\n\"'}\\", f->text.p[stop]))
			stop++;
		return hide(f, value, stop, true, out);
	} else if (f->is_settings && next == ' ' && str_starts(name, STR("--")) &&
		   char_at(f, end + 1) != '-') {
		known = bare(name);
		if (redact_is_secret(known))
			return hide_assigned(f, f->text.n, end + 1, true, out);
	}
	f->at = end;
	return false;
}

static bool next_span(struct secret_finder *f, struct secret_span *out)
{
	while (f->at < f->text.n) {
		size_t width;
		bool is_found;

		if (f->list) {
			is_found = at_list(f, out);
			if (is_found)
				return true;
			continue;
		}
		width = f->is_urls_alone ? 0 : quote_at(f, f->at);
		if (width)
			is_found = at_quote(f, width, out);
		else if (is_name_char(f->text.p[f->at]))
			is_found = at_word(f, out);
		else
			is_found = ++f->at == 0;
		if (is_found)
			return true;
	}
	return false;
}

/* ---- texts ---- */

static struct str without(struct secret_finder *f, struct buf *room)
{
	struct secret_span span = { 0 };
	size_t plain = 0;
	bool has_one = false;

	if (!f->text.n)
		return f->text;
	while (next_span(f, &span)) {
		add_without_learned(room, (struct str){ f->text.p + plain, span.at - plain });
		buf_add_text(room, span.is_bare ? "\"" REDACTED "\"" : REDACTED);
		plain = span.at + span.n;
		has_one = true;
		span = (struct secret_span){ 0 };
	}
	if (!has_one && !holds_learned(f->text))
		return f->text;
	add_without_learned(room, (struct str){ f->text.p + plain, f->text.n - plain });
	return buf_str(room);
}

struct str redact(struct str text, struct buf *room)
{
	struct secret_finder f = { .text = text };

	return without(&f, room);
}

struct str redact_data(struct str text, struct buf *room)
{
	struct secret_finder f = { .text = text, .is_urls_alone = true };

	return without(&f, room);
}

struct str redact_line(struct str line, struct buf *room)
{
	struct secret_finder f = { .text = line, .is_line = true, .is_settings = true };

	return without(&f, room);
}

/* Whether anything changed. */
static bool hide_tail(struct buf *b, size_t from, enum redact_kind kind)
{
	struct buf room = { .limit = b->limit };
	struct secret_finder f = {
		.text = { b->data + from, b->len - from },
		.is_settings = kind == REDACT_SETTINGS, .is_urls_alone = kind == REDACT_DATA,
	};
	struct str out = without(&f, &room);
	bool is_changed = !str_eq(out, f.text);

	if (is_changed) {
		b->len = from;
		buf_add_str(b, out);
	}
	buf_release(&room);
	return is_changed;
}

void redact_tail(struct buf *b, size_t from, enum redact_kind kind)
{
	/* Without a secret, what was apart may be one address with another: it looks again. */
	for (int i = 0; b->len > from && i < LOOKS_MAX && hide_tail(b, from, kind); i++)
		;
}

/* ---- commands ---- */

/* The meaning of a word after others: lists of secrets and headers extend to the next option. */
static enum list list_of(enum list before, const char *word)
{
	struct str name = str_of(word);

	if (*word != '-')
		return before;
	if (strcmp(word, "-H") == 0 || (is_headers(name) && !strchr(word, '=')))
		return LIST_HEADERS;
	return !strchr(word, '=') && redact_is_secret(name) ? LIST_SECRETS : LIST_NONE;
}

static struct str header_line(struct str line, struct buf *room)
{
	size_t n = 0;

	while (n < line.n && !strchr("=:", line.p[n]))
		n++;
	if (n < line.n && !redact_is_secret_header((struct str){ line.p, n }))
		return line;
	if (n < line.n)
		buf_add(room, line.p, n + 1);
	buf_add_text(room, REDACTED);
	return buf_str(room);
}

char **redact_words(char *const *argv, struct arena *a)
{
	enum list list = LIST_NONE;
	size_t n = 0;
	char **out;

	while (argv[n])
		n++;
	out = arena_alloc(a, (n + 1) * sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		struct str word = str_of(argv[i]), shown;
		struct buf room = { 0 };
		bool is_value = list && *argv[i] != '-';

		list = list_of(list, argv[i]);
		if (is_value && list == LIST_SECRETS)
			shown = STR(REDACTED);
		else
			shown = is_value ? header_line(word, &room) : redact_line(word, &room);
		out[i] = shown.p == word.p ? argv[i] : arena_text(a, shown);
		buf_release(&room);
	}
	return out;
}

/* ---- learning ---- */

static void learn_spans(struct secret_finder *f)
{
	struct secret_span span = { 0 };

	while (next_span(f, &span)) {
		struct str value = { f->text.p + span.at, span.n };

		if (span.is_learned)
			redact_learn(value);
		span = (struct secret_span){ 0 };
	}
}

void redact_learn_text(struct str text)
{
	struct secret_finder f = { .text = text, .is_settings = true };

	learn_spans(&f);
}

static void learn_line(struct str line, bool is_header)
{
	struct secret_finder f = { .text = line, .is_line = true, .is_settings = true,
			    .headers_end = is_header ? line.n : 0 };

	learn_spans(&f);
	/* Refused by its reader, and the value cannot be located: every word may be secret. */
	if (is_header && !memchr(line.p, '=', line.n) && !memchr(line.p, ':', line.n))
		while (line.n)
			learn(str_cut(&line, ' '));
}

void redact_learn_lines(char *const *lines)
{
	for (; lines && *lines; lines++)
		learn_line(str_of(*lines), false);
}

void redact_learn_words(char *const *argv)
{
	enum list list = LIST_NONE;

	for (; argv && *argv; argv++) {
		bool is_value = list && **argv != '-';
		struct str line = str_of(*argv);

		list = list_of(list, *argv);
		if (is_value && list == LIST_SECRETS)
			redact_learn(line);
		else
			learn_line(line, is_value);
	}
}
