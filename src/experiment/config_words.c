/* SPDX-License-Identifier: Apache-2.0 */
/* config_words.c - see config.h: the arguments of a server as the words of a command line. */
#include "engine/flags.h"
#include "experiment/config.h"

static const char *last_part(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

bool config_is_sim(char *const *command)
{
	if (!command || !command[0])
		return false;
	if (!command[1])
		return strcmp(command[0], "sim") == 0;
	for (size_t i = 0; command[i + 1]; i++)
		if (strcmp(last_part(command[i]), "profllm") == 0 && strcmp(command[i + 1], "sim") == 0)
			return true;
	return false;
}

/* Behind `vllm serve` and `profllm sim` the model has no name. */
static bool is_model_bare(char *const *command)
{
	const char *last = "";

	for (size_t i = 0; command && command[i]; i++)
		last = command[i];
	return config_is_sim(command) || strcmp(last, "serve") == 0;
}

char *const *config_server_words(const struct experiment_server *s, struct arena *a)
{
	static const char *const apart[] = { "model", "host", "port", NULL };
	struct str model = json_text(json_get(s->args, "model"), (struct str){ 0 });
	char **flags = engine_flags(s->args, apart, a), **words;
	size_t n_flags = 0, n_extra = 0, n = 0;

	while (flags[n_flags])
		n_flags++;
	while (s->extra_args && s->extra_args[n_extra])
		n_extra++;
	words = arena_alloc(a, (n_flags + n_extra + 3) * sizeof(*words));
	if (model.n && !is_model_bare(s->command))
		words[n++] = arena_text(a, STR("--model"));
	if (model.n)
		words[n++] = arena_text(a, model);
	memcpy(words + n, flags, n_flags * sizeof(*words));
	for (size_t i = 0; i < n_extra; i++)
		words[n + n_flags + i] = s->extra_args[i];
	return words;
}
