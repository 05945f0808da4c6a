/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.h - changes that keep an input's form, for targets that refuse most random bytes at once.
 *
 * Each mutator changes data of `size` bytes in place, to at most `max` bytes, and returns the new
 * size. Every third change is one of the fuzzer's own, so that broken forms are tried, too.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static inline unsigned mutate_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

struct mutate_span { size_t at, n; };

/* Puts `with` in the place of a span; the old size where that does not fit. */
static inline size_t mutate_replace(uint8_t *data, size_t size, size_t max, struct mutate_span span,
				    const uint8_t *with, size_t n)
{
	uint8_t *copy;

	if (size - span.n + n > max)
		return size;
	copy = malloc(n + 1);
	memcpy(copy, with, n);
	memmove(data + span.at + n, data + span.at + span.n, size - span.at - span.n);
	memcpy(data + span.at, copy, n);
	free(copy);
	return size - span.n + n;
}

/* The bytes of one span, changed by the fuzzer; all others stay. */
static inline size_t mutate_span(uint8_t *data, size_t size, size_t max, struct mutate_span span)
{
	size_t room = span.n + (max - size), n;
	uint8_t *copy = malloc(room + 1);

	memcpy(copy, data + span.at, span.n);
	n = LLVMFuzzerMutate(copy, span.n, room);
	size = mutate_replace(data, size, max, span, copy, n);
	free(copy);
	return size;
}

/* A piece up to and including the next separator. */
static inline struct mutate_span mutate_piece(const uint8_t *data, size_t size, char sep,
					      unsigned *seed)
{
	size_t at = size ? mutate_random(seed) % size : 0, end = at;

	while (at > 0 && data[at - 1] != (uint8_t)sep)
		at--;
	while (end < size && data[end] != (uint8_t)sep)
		end++;
	return (struct mutate_span){ at, end - at + (end < size) };
}

/* Lines of a message, parameters of a query: one is changed, removed, doubled, or replaced. */
static inline size_t mutate_pieces(uint8_t *data, size_t size, size_t max, char sep, unsigned seed)
{
	struct mutate_span a = mutate_piece(data, size, sep, &seed);
	struct mutate_span b = mutate_piece(data, size, sep, &seed);

	switch (mutate_random(&seed) % 6) {
	case 0: return mutate_replace(data, size, max, a, data, 0);
	case 1: return mutate_replace(data, size, max, a, data + b.at, b.n);
	case 2: return mutate_replace(data, size, max, (struct mutate_span){ a.at, 0 }, data + b.at,
				      b.n);
	case 3: return mutate_span(data, size, max, a);
	default: return LLVMFuzzerMutate(data, size, max);
	}
}

/* A value of JSON text: from a random place where one may begin, by its brackets. */
static inline struct mutate_span mutate_value(const uint8_t *data, size_t size, unsigned *seed)
{
	size_t at = size ? mutate_random(seed) % size : 0, i, depth = 0;
	bool is_text = false;

	while (at < size && !strchr(":,[{", data[at] ? data[at] : ' '))
		at++;
	while (at < size && strchr(":,[{ \n", data[at] ? data[at] : 'x'))
		at++;
	for (i = at; i < size; i++) {
		if (is_text) {
			i += data[i] == '\\';
			is_text = i >= size || data[i] != '"';
		} else if (data[i] == '"') {
			is_text = true;
		} else if (data[i] == '{' || data[i] == '[') {
			depth++;
		} else if (data[i] == '}' || data[i] == ']' || data[i] == ',') {
			if (depth == 0)
				break;
			depth -= data[i] != ',';
		}
	}
	i = i < size ? i : size;
	return (struct mutate_span){ at < i ? at : i, at < i ? i - at : 0 };
}

static inline size_t mutate_json(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const char *const value[] = {
		"null", "true", "-1", "0", "1e999", "9007199254740993", "0.1", "\"\"", "\"\\ud800\"", "[]", "{}",
		"[[[[[[[[]]]]]]]]", "\"a\"", "[\"a\", \"b\"]", "{\"a\": 1, \"a\": 2}",
	};
	struct mutate_span a = mutate_value(data, size, &seed), b = mutate_value(data, size, &seed);
	const char *v = value[mutate_random(&seed) % (sizeof(value) / sizeof(*value))];

	switch (mutate_random(&seed) % 6) {
	case 0: return mutate_replace(data, size, max, a, (const uint8_t *)v, strlen(v));
	case 1: return mutate_replace(data, size, max, a, data + b.at, b.n);
	case 2: return mutate_replace(data, size, max, a, data, 0);
	case 3: return mutate_span(data, size, max, a);
	default: return LLVMFuzzerMutate(data, size, max);
	}
}
