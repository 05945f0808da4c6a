/* SPDX-License-Identifier: Apache-2.0 */
/* llama_library.c - see llama_library.h. */
#include "llama_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_OPTIONAL "llama_max_parallel_sequences"

enum { WORD_CONTEXT, WORD_BATCH, WORD_MICRO_BATCH, WORD_SEQUENCES, WORDS };
static const uint32_t defaults[WORDS] = { 512, 2048, 512, 1 };

#define OF(member) { "llama_" #member, offsetof(struct llama_library, member) }
#define OF_GGML(member) { #member, offsetof(struct llama_library, member) }
static const struct { const char *name; size_t at; } functions[] = {
	OF(backend_init), OF(model_default_params), OF(context_default_params),
	OF(model_load_from_file), OF(model_free), OF(init_from_model), OF(free), OF(n_ctx),
	OF(n_batch), OF(n_seq_max), OF(set_n_threads), OF(get_memory), OF(memory_seq_rm),
	OF(model_get_vocab), OF(model_n_ctx_train), OF(model_desc), OF(vocab_n_tokens),
	OF(vocab_is_eog), OF(tokenize), OF(token_to_piece), OF(batch_init), OF(batch_free),
	OF(decode), OF(sampler_chain_init), OF(sampler_chain_add), OF(sampler_init_greedy),
	OF(sampler_init_dist), OF(sampler_init_temp), OF(sampler_init_top_p), OF(sampler_sample),
	OF(sampler_free),
	OF(max_parallel_sequences), OF(n_ctx_seq), OF_GGML(ggml_version),
	OF_GGML(ggml_backend_load_all_from_path), OF_GGML(ggml_backend_dev_count),
	OF_GGML(ggml_backend_dev_get), OF_GGML(ggml_backend_dev_type),
	OF_GGML(ggml_backend_dev_description),
};

static int functions_find(struct llama_library *l, struct err *e)
{
	bool is_needed = true;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(l->handle, functions[i].name);

		is_needed = is_needed && strcmp(functions[i].name, FIRST_OPTIONAL);
		if (!found && is_needed)
			return err_set(e, ERR_RUN, "%s has no %s: a llama.cpp from June 2025 or later "
				       "is needed", l->path, functions[i].name);
		memcpy((char *)l + functions[i].at, &found, sizeof(found));
	}
	return 0;
}

/* Checks the layout of a batch by the one that the library made. */
static int batch_check(const struct llama_library *l, struct err *e)
{
	struct llama_batch b = l->batch_init(2, 0, 1);
	bool is_ours = b.n_tokens == 0 && b.token && !b.embd && b.pos && b.n_seq_id && b.seq_id &&
		       b.logits && b.seq_id[0] && b.seq_id[1] && !b.seq_id[2];

	if (!is_ours)
		return err_set(e, ERR_RUN, "%s has another struct llama_batch than this program knows",
			       l->path);
	l->batch_free(b);
	return 0;
}

/* Backends may be libraries of their own next to it. */
static void backends_load(const struct llama_library *l)
{
	char folder[sizeof(l->path)];
	char *slash;

	l->backend_init();
	if (!l->ggml_backend_load_all_from_path || !l->ggml_backend_dev_count ||
	    l->ggml_backend_dev_count() > 0)
		return;
	snprintf(folder, sizeof(folder), "%s", l->path);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	l->ggml_backend_load_all_from_path(slash ? folder : NULL);
}

int llama_library_open(struct llama_library *l, struct err *e)
{
	const char *given = getenv("PROFLLM_LIBLLAMA");
	const char *names[] = { given && *given ? given : "libllama.so",
				given && *given ? NULL : "libllama.so.0" };
	char why[512] = "";
	void *inside;
	Dl_info info;

	*l = (struct llama_library){ 0 };
	for (size_t i = 0; i < 2 && names[i] && !l->handle; i++) {
		l->handle = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
		if (!l->handle && !*why)
			snprintf(why, sizeof(why), "%s", dlerror());
	}
	if (!l->handle)
		return err_set(e, ERR_RUN, "llama.cpp's library cannot be loaded (PROFLLM_LIBLLAMA may "
			       "name it): %s", why);
	inside = dlsym(l->handle, "llama_backend_init");
	if (inside && dladdr(inside, &info) && info.dli_fname)
		snprintf(l->path, sizeof(l->path), "%s", info.dli_fname);
	else
		snprintf(l->path, sizeof(l->path), "%s", names[0]);
	if (functions_find(l, e) < 0 || batch_check(l, e) < 0)
		return -1;
	backends_load(l);
	return 0;
}

const char *llama_library_device(const struct llama_library *l)
{
	const char *found = "";
	size_t n;

	if (!l->ggml_backend_dev_count || !l->ggml_backend_dev_get || !l->ggml_backend_dev_type ||
	    !l->ggml_backend_dev_description)
		return "";
	n = l->ggml_backend_dev_count();
	for (size_t i = n; i-- > 0;) { /* type 0 is the processor: anything else goes before it */
		void *device = l->ggml_backend_dev_get(i);

		if (!*found || l->ggml_backend_dev_type(device) != 0)
			found = l->ggml_backend_dev_description(device);
	}
	return found ? found : "";
}

int llama_library_context(const struct llama_library *l, uint32_t context, uint32_t batch,
			  uint32_t sequences, struct llama_parameters *out, struct err *e)
{
	*out = l->context_default_params();
	for (size_t i = 0; i < WORDS; i++)
		if (out->word[i] != defaults[i])
			return err_set(e, ERR_RUN, "%s has other parameters of a context than this "
				       "program knows: number %zu is %u by default, not %u", l->path,
				       i + 1, out->word[i], defaults[i]);
	out->word[WORD_CONTEXT] = context;
	out->word[WORD_BATCH] = batch;
	if (batch < defaults[WORD_MICRO_BATCH])
		out->word[WORD_MICRO_BATCH] = batch;
	out->word[WORD_SEQUENCES] = sequences;
	return 0;
}
