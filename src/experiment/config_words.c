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

/* Of several keys vLLM takes one from its environment. */
static const struct { const char *key, *variable; bool is_sims; } secrets[] = {
	{ "api_key", "VLLM_API_KEY", true }, { "hf_token", "HF_TOKEN", false },
};
#define N_SECRETS (sizeof(secrets) / sizeof(*secrets))

/* The value that goes into the environment; empty: it does not. */
static struct str secret_of(const struct experiment_server *s, size_t i)
{
	if (!s->is_vllm && !(s->is_sim && secrets[i].is_sims))
		return STR("");
	return json_text(json_get(s->args, secrets[i].key), STR(""));
}

char **config_server_secrets(const struct experiment_server *s, struct arena *a)
{
	char **out = arena_alloc(a, (N_SECRETS + 1) * sizeof(*out));
	size_t n = 0;

	for (size_t i = 0; i < N_SECRETS; i++) {
		struct str value = secret_of(s, i);

		if (value.n)
			out[n++] = arena_printf(a, "%s=%.*s", secrets[i].variable, (int)value.n,
						value.p);
	}
	return out;
}

char *const *config_server_words(const struct experiment_server *s, struct arena *a)
{
	const char *apart[4 + N_SECRETS] = { "model", "host", "port" };
	struct str model = json_text(json_get(s->args, "model"), (struct str){ 0 });
	size_t n_flags = 0, n_extra = 0, n = 0, n_apart = 3;
	char **flags, **words;

	for (size_t i = 0; i < N_SECRETS; i++)
		if (secret_of(s, i).n)
			apart[n_apart++] = secrets[i].key;
	flags = engine_flags(s->args, apart, a);
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
