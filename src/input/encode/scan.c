/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - four shapes of expressions, each a function from a word's start to its end.
 *
 * Where the expressions backtrack, these functions look at the next class instead: alternatives
 * begin with disjoint classes, or with an optional prefix before one. Comments quote the
 * alternative that a line implements. Runs of ASCII are skipped 16 bytes at a time, without a
 * branch for where they end.
 */
#include "input/encode/pretok.h"

#include <stdbool.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "input/encode/chars.h"

#define SPACES CLASS_SPACES
#define NEWLINE (1u << CLASS_NEWLINE)
#define LETTERS CLASS_LETTERS
#define MARKS CLASS_SET(CLASS_MARK)
#define NUMBERS CLASS_SET(CLASS_NUMBER)
#define SIGNS (CLASS_SET(CLASS_PUNCTUATION) | CLASS_SET(CLASS_SYMBOL))
/* [^\s\p{L}\p{N}] */
#define REST (CLASS_SET(CLASS_OTHER) | MARKS | SIGNS)

#define BOTH (CLASS_SET(CLASS_LM) | CLASS_SET(CLASS_LO) | MARKS)
#define UPPER (CLASS_SET(CLASS_LU) | CLASS_SET(CLASS_LT) | BOTH)
#define LOWER (CLASS_SET(CLASS_LL) | BOTH)
#define HAN CLASS_HAN_SET

struct scan_view {
	const struct scanner *s;
	const struct classes *classes;
	const uint8_t *end;
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* ---- characters and runs ---- */

ALWAYS_INLINE unsigned class_at(const struct scan_view *v, const uint8_t *p, unsigned *n)
{
	unsigned class = CLASS_END;

	*n = 1;
	if (p < v->end)
		class = v->classes->byte[*p];
	return class == CLASS_LEAD ? classes_of_long(v->classes, p, n) : class;
}

ALWAYS_INLINE bool is_in(unsigned class, uint32_t set)
{
	return set >> class & 1;
}

ALWAYS_INLINE const uint8_t *skip(const struct scan_view *v, const uint8_t *p, uint32_t set)
{
	unsigned n;

	while (is_in(class_at(v, p, &n), set))
		p += n;
	return p;
}

/* Skips bytes that are first..last once the bits of fold are set; first > 0. */
ALWAYS_INLINE const uint8_t *skip_ascii(const struct scan_view *v, const uint8_t *p, int fold,
	int first, int last)
{
#ifdef __SSE2__
	while (v->end - p >= 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p), is_inside;

		x = _mm_or_si128(x, _mm_set1_epi8((char)fold));
		is_inside = _mm_and_si128(_mm_cmpgt_epi8(x, _mm_set1_epi8((char)(first - 1))),
			_mm_cmplt_epi8(x, _mm_set1_epi8((char)(last + 1))));
		unsigned out = ~(unsigned)_mm_movemask_epi8(is_inside) & 0xffff;
		if (out)
			return p + __builtin_ctz(out);
		p += 16;
	}
#endif
	while (p < v->end && (*p | fold) >= first && (*p | fold) <= last)
		p++;
	return p;
}

/* set holds the ASCII letters. */
ALWAYS_INLINE const uint8_t *skip_letters(const struct scan_view *v, const uint8_t *p, uint32_t set)
{
	p = skip_ascii(v, p, 0x20, 'a', 'z');
	return p < v->end && *p >= 0x80 ? skip(v, p, set) : p;
}

/* \p{N}{1,most} */
ALWAYS_INLINE const uint8_t *skip_digits(const struct scan_view *v, const uint8_t *p, unsigned most)
{
	unsigned n;

	for (; most > 0 && is_in(class_at(v, p, &n), NUMBERS); most--)
		p += n;
	return p;
}

/* The length of s, t, re, ve, m, ll or d after an apostrophe; 0 when it is none of them. */
ALWAYS_INLINE size_t contraction(const struct scan_view *v, const uint8_t *p, int fold)
{
	size_t n = (size_t)(v->end - p);
	int a = n > 0 ? p[0] | fold : 0, b = n > 1 ? p[1] | fold : 0;

	switch (a) {
	case 's': case 't': case 'm': case 'd':
		return 1;
	case 'l':
		return b == 'l' ? 2 : 0;
	case 'r': case 'v':
		return b == 'e' ? 2 : 0;
	default: /* U+017F, the long s */
		return fold && n > 1 && p[0] == 0xc5 && p[1] == 0xbf ? 2 : 0;
	}
}

/*
 * White space from p on: \s*[\r\n]+|\s+(?!\S)|\s+, or the last two. All up to the last
 * line end; else all but the character before a word, unless that is the only one.
 */
ALWAYS_INLINE const uint8_t *space_end(const struct scan_view *v, const uint8_t *p, bool has_lines)
{
	const uint8_t *last = p, *line = NULL, *q = p;
	unsigned n, class;

	while (is_in(class = class_at(v, q, &n), SPACES)) {
		last = q;
		q += n;
		if (class == CLASS_NEWLINE)
			line = q;
	}
	if (has_lines && line)
		return line;
	return class == CLASS_END || last == p ? q : last;
}

/* Words from s->at on, one after the other, up to end; end_of is inlined. */
ALWAYS_INLINE size_t fill(struct scan *s, const uint8_t *end, struct str *word, size_t room,
	const uint8_t *(*end_of)(const struct scan_view *v, const uint8_t *p))
{
	struct scan_view v = { s->scanner, classes_get(), end };
	const uint8_t *p = s->at;
	size_t count = 0;

	while (p < end && count < room) {
		const uint8_t *q = end_of(&v, p);

		word[count++] = (struct str){ (const char *)p, (size_t)(q - p) };
		p = q;
	}
	s->at = p;
	return count;
}

/* ---- GPT-2 ---- */

ALWAYS_INLINE const uint8_t *gpt2_end(const struct scan_view *v, const uint8_t *p)
{
	unsigned n, class = class_at(v, p, &n);
	const uint8_t *q = p;
	size_t short_form;

	if (*p == '\'') {
		short_form = contraction(v, p + 1, 0);
		if (short_form)
			return p + 1 + short_form;
	} else if (*p == ' ') { /* " ?" */
		q = p + 1;
		class = class_at(v, q, &n);
	}
	if (is_in(class, LETTERS))
		return skip_letters(v, q + n, LETTERS);
	if (is_in(class, REST))
		return skip(v, q + n, REST);
	if (is_in(class, NUMBERS))
		return skip(v, q + n, NUMBERS);
	return space_end(v, p, false);
}

static size_t cut_gpt2(struct scan *s, struct str *word, size_t room)
{
	return fill(s, s->end, word, room, gpt2_end);
}

/* ---- Llama 3, Qwen ---- */

ALWAYS_INLINE const uint8_t *llama3_end(const struct scan_view *v, const uint8_t *p)
{
	uint32_t letters = v->s->letters;
	unsigned n, class = class_at(v, p, &n), next_n, next;
	const uint8_t *q = p + n;
	size_t short_form;

	if (is_in(class, letters))
		return skip_letters(v, q, letters);
	if (is_in(class, NUMBERS))
		return skip_digits(v, q, v->s->digits_max - 1u);
	if (*p == '\'') {
		short_form = contraction(v, q, 0x20);
		if (short_form)
			return q + short_form;
	}
	if (class != CLASS_NEWLINE) {
		next = class_at(v, q, &next_n);
		if (is_in(next, letters)) /* [^\r\n\p{L}\p{N}]?\p{L}+ */
			return skip_letters(v, q + next_n, letters);
		if (*p == ' ' && is_in(next, v->s->punctuation)) {
			q += next_n;
			class = next;
		}
	}
	if (is_in(class, v->s->punctuation)) /* " ?[^\s\p{L}\p{N}]+[\r\n]*" */
		return skip(v, skip(v, q, v->s->punctuation), NEWLINE);
	return space_end(v, p, true);
}

static size_t cut_llama3(struct scan *s, struct str *word, size_t room)
{
	return fill(s, s->end, word, room, llama3_end);
}

/* ---- o200k, tekken, Kimi: words by case ---- */

/*
 * upper*lower+ or, failing that, upper+lower*: NULL when neither matches. Without a lower-case
 * letter after the upper ones, lower+ gets what upper* gives back: up to the last character that is
 * in both sets.
 */
ALWAYS_INLINE const uint8_t *cased_end(const struct scan_view *v, const uint8_t *p, bool *is_upper)
{
	uint32_t upper = v->s->upper, lower = v->s->lower;
	const uint8_t *both = NULL, *q = p;
	unsigned n, class;

	*is_upper = false;
	while (is_in(class = class_at(v, q, &n), upper)) {
		q += n;
		if (is_in(class, lower))
			both = q;
	}
	if (is_in(class, lower)) {
		q = skip_ascii(v, q + n, 0, 'a', 'z');
		return q < v->end && *q >= 0x80 ? skip(v, q, lower) : q;
	}
	if (both || q == p)
		return both;
	*is_upper = true;
	return q;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)? */
ALWAYS_INLINE const uint8_t *with_contraction(const struct scan_view *v, const uint8_t *q)
{
	size_t n;

	if (q == v->end || *q != '\'' || !v->s->has_contractions)
		return q;
	n = contraction(v, q + 1, 0x20);
	return n ? q + 1 + n : q;
}

/*
 * A word of letters and marks with its prefix, or NULL. A mark can be prefix or word:
 * it is alone when only upper-case letters follow, for lower+ then takes the mark.
 */
ALWAYS_INLINE const uint8_t *cased_word(const struct scan_view *v, const uint8_t *p, unsigned class,
	unsigned n)
{
	const uint8_t *q;
	bool is_upper;

	if (is_in(class, NEWLINE | NUMBERS))
		return NULL;
	if (is_in(class, LETTERS)) {
		q = cased_end(v, p, &is_upper);
		return q ? with_contraction(v, q) : NULL;
	}
	q = cased_end(v, p + n, &is_upper);
	if (is_in(class, MARKS) && (!q || is_upper))
		q = p + n;
	return q ? with_contraction(v, q) : NULL;
}

ALWAYS_INLINE const uint8_t *o200k_end(const struct scan_view *v, const uint8_t *p)
{
	unsigned n, class = class_at(v, p, &n), next_n;
	const uint8_t *q;

	if (is_in(class, v->s->whole)) /* [\p{Han}]+ */
		return skip(v, p + n, v->s->whole);
	q = cased_word(v, p, class, n);
	if (q)
		return q;
	q = p + n;
	if (is_in(class, NUMBERS))
		return skip_digits(v, q, v->s->digits_max - 1u);
	if (*p == ' ' && is_in(class_at(v, q, &next_n), REST))
		q += next_n;
	else if (!is_in(class, REST))
		return space_end(v, p, true);
	q = skip(v, q, REST); /* " ?[^\s\p{L}\p{N}]+[\r\n/]*" */
	while (q < v->end && (is_in(v->classes->byte[*q], NEWLINE) ||
		(*q == '/' && v->s->has_slash_tail)))
		q++;
	return q;
}

static size_t cut_o200k(struct scan *s, struct str *word, size_t room)
{
	return fill(s, s->end, word, room, o200k_end);
}

/* ---- DeepSeek V3: three stages ---- */

/* [U+3040-U+30FF U+4E00-U+9FA5], all of three bytes. */
ALWAYS_INLINE bool is_east_asian(const uint8_t *p, const uint8_t *end)
{
	uint32_t bytes;

	if (p == end || *p < 0xe3 || *p > 0xe9)
		return false;
	bytes = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
	return (bytes >= 0xe38180 && bytes <= 0xe383bf) ||
		(bytes >= 0xe4b880 && bytes <= 0xe9bea5);
}

/* Up to a digit or a character that is not ASCII. */
ALWAYS_INLINE const uint8_t *skip_no_digits(const struct scan_view *v, const uint8_t *p)
{
#ifdef __SSE2__
	while (v->end - p >= 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i is_digit = _mm_and_si128(_mm_cmpgt_epi8(x, _mm_set1_epi8('0' - 1)),
			_mm_cmplt_epi8(x, _mm_set1_epi8('9' + 1)));
		unsigned stop = (unsigned)_mm_movemask_epi8(_mm_or_si128(x, is_digit));

		if (stop)
			return p + __builtin_ctz(stop);
		p += 16;
	}
#endif
	while (p < v->end && *p < 0x80 && (*p < '0' || *p > '9'))
		p++;
	return p;
}

/* Skips what the first two stages leave in one piece. */
static const uint8_t *deepseek_piece(const struct scan_view *v, const uint8_t *p)
{
	unsigned n, class = class_at(v, p, &n);

	if (is_in(class, NUMBERS))
		return skip_digits(v, p, 3);
	if (is_east_asian(p, v->end)) {
		while (is_east_asian(p, v->end))
			p += 3;
		return p;
	}
	while (p < v->end && !is_in(class, NUMBERS) && !is_east_asian(p, v->end)) {
		p = skip_no_digits(v, p + n);
		class = class_at(v, p, &n);
	}
	return p;
}

/* The third stage inside a piece that ends at v->end. */
ALWAYS_INLINE const uint8_t *deepseek_end(const struct scan_view *v, const uint8_t *p)
{
	uint32_t letters = LETTERS | MARKS;
	unsigned n, class = class_at(v, p, &n), next_n, next;
	const uint8_t *q = p + n;

	if (is_in(class, letters))
		return skip_letters(v, q, letters);
	if (*p < 0x80 && is_in(class, SIGNS)) { /* [!-/:-~][A-Za-z]+ */
		const uint8_t *word = skip_ascii(v, q, 0x20, 'a', 'z');

		if (word > q)
			return word;
	}
	next = class_at(v, q, &next_n);
	if (is_in(class, SIGNS) || (*p == ' ' && is_in(next, SIGNS))) /* " ?[\p{P}\p{S}]+[\r\n]*" */
		return skip(v, skip(v, q, SIGNS), NEWLINE);
	if (class != CLASS_NEWLINE && is_in(next, letters))
		return skip_letters(v, q + next_n, letters);
	if (is_in(class, SPACES))
		return space_end(v, p, true);
	/*
	 * Nothing matches here: such characters stay together, except that the last may be a
	 * prefix.
	 */
	while (is_in(next, CLASS_SET(CLASS_OTHER) | NUMBERS)) {
		const uint8_t *after = q + next_n;
		unsigned after_n, after_class = class_at(v, after, &after_n);

		if (is_in(after_class, letters))
			break;
		q = after;
		next = after_class;
		next_n = after_n;
	}
	return q;
}

static size_t cut_deepseek(struct scan *s, struct str *word, size_t room)
{
	struct scan_view v = { s->scanner, classes_get(), s->end };
	size_t count = 0;

	while (s->at < s->end && count < room) {
		if (s->at == s->piece_end)
			s->piece_end = deepseek_piece(&v, s->at);
		count += fill(s, s->piece_end, word + count, room - count, deepseek_end);
	}
	return count;
}

/* ---- the table ---- */

#define SHORT_FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES_TEXT "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3(digits) SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES_TEXT
#define UPPER_TEXT "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER_TEXT "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define O200K(not_han, short_forms, digits, tail) \
	"[^\\r\\n\\p{L}\\p{N}]?[" UPPER_TEXT not_han "]*[" LOWER_TEXT not_han "]+" short_forms \
	"|[^\\r\\n\\p{L}\\p{N}]?[" UPPER_TEXT not_han "]+[" LOWER_TEXT not_han "]*" short_forms \
	"|" digits "| ?[^\\s\\p{L}\\p{N}]+" tail "|" SPACES_TEXT

const struct scanner scan_scanners[] = {
	{ .name = "GPT-2", .cut = cut_gpt2, .pattern = {
		"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
		"\\s+(?!\\S)|\\s+" } },
	{ .name = "Llama 3", .cut = cut_llama3, .letters = LETTERS, .punctuation = REST,
		.digits_max = 3, .pattern = { LLAMA3("\\p{N}{1,3}") } },
	{ .name = "Qwen", .cut = cut_llama3, .letters = LETTERS, .punctuation = REST,
		.digits_max = 1, .pattern = { LLAMA3("\\p{N}") } },
	{ .name = "Ling", .cut = cut_llama3, .letters = LETTERS, .punctuation = REST,
		.digits_max = 1, .pattern = {
		"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"
		" ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+" } },
	{ .name = "Qwen 3.5", .cut = cut_llama3, .letters = LETTERS | MARKS,
		.punctuation = REST & ~MARKS, .digits_max = 1, .pattern = {
		SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
		" ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES_TEXT } },
	{ .name = "o200k", .cut = cut_o200k, .upper = UPPER, .lower = LOWER, .digits_max = 3,
		.has_contractions = true, .has_slash_tail = true, .pattern = {
		O200K("", SHORT_FORMS "?", "\\p{N}{1,3}", "[\\r\\n/]*") } },
	{ .name = "tekken", .cut = cut_o200k, .upper = UPPER, .lower = LOWER, .digits_max = 1,
		.has_slash_tail = true, .pattern = {
		O200K("", "", "\\p{N}", "[\\r\\n/]*") } },
	{ .name = "Kimi", .cut = cut_o200k, .upper = UPPER & ~HAN, .lower = LOWER & ~HAN,
		.whole = HAN, .digits_max = 3, .has_contractions = true, .pattern = {
		"[\\p{Han}]+|" O200K("&&[^\\p{Han}]", SHORT_FORMS "?", "\\p{N}{1,3}",
			"[\\r\\n]*") } },
	{ .name = "DeepSeek V3", .cut = cut_deepseek, .pattern = {
		"\\p{N}{1,3}",
		"[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+",
		"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
		"[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
		SPACES_TEXT } },
};
const size_t scan_count = sizeof scan_scanners / sizeof *scan_scanners;

static bool is_pattern(struct str text, const char *pattern)
{
	size_t i = 0;

	for (; i < text.n && *pattern; i++) {
		char c = text.p[i];

		if (c == '\r' || c == '\n') {
			if (*pattern++ != '\\')
				return false;
			c = c == '\r' ? 'r' : 'n';
		}
		if (*pattern++ != c)
			return false;
	}
	return i == text.n && !*pattern;
}

static size_t stages_of(const struct scanner *s, const struct str *pattern, size_t count)
{
	size_t i = 0;

	while (i < SCAN_PATTERNS_MAX && s->pattern[i]) {
		if (i == count || !is_pattern(pattern[i], s->pattern[i]))
			return 0;
		i++;
	}
	return i;
}

const struct scanner *scan_find(const struct str *pattern, size_t count, size_t *used)
{
	for (size_t i = 0; i < scan_count; i++) {
		*used = stages_of(scan_scanners + i, pattern, count);
		if (*used > 0)
			return scan_scanners + i;
	}
	return NULL;
}
