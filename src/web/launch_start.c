/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/launch_start.c - see launch_parts.h: how `profllm run` is started for whoever asks.
 *
 * Its environment is an allow list: what a program needs to find programs, files and devices, and
 * what --launch-env names. So an experiment has none of the dashboard's secrets, neither by
 * ${NAME} nor by looking at its own environment. `--bounded` and what follows it say what the
 * configuration may read and start (experiment/config_bounds.h).
 */
#include <unistd.h>

#include "base/words.h"
#include "proc/program.h"
#include "proc/tool.h"
#include "web/launch_parts.h"

#define CHECK_SECONDS 5
#define CHECK_FILE_BYTES_MAX (16u << 20) /* of a plan */
#ifdef __SANITIZE_ADDRESS__
#define CHECK_MEMORY_BYTES_MAX 0         /* its shadow alone has more */
#else
#define CHECK_MEMORY_BYTES_MAX (1u << 30)
#endif

/* A star at the end stands for anything that holds no word of a secret. docs/guide/dashboard.md */
static const char *const kept[] = {
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*",
	"LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "CUDA_*",
	"NVIDIA_*", "HIP_*", "ROCR_*", "ROCM_*", "HSA_*", "NCCL_*", "OMP_*", "HF_HOME",
	"HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HUGGINGFACE_HUB_CACHE",
	"TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT",
	"PROFLLM_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"no_proxy", "NO_PROXY", "DOCKER_HOST", "KUBERNETES_SERVICE_HOST", "container",
};

static bool is_kept_name(const char *pattern, const char *name)
{
	static const char *const secret[] = { "KEY", "TOKEN", "SECRET", "PASS" };
	size_t n = strlen(pattern);

	if (pattern[n - 1] != '*')
		return strcmp(pattern, name) == 0;
	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
		if (strstr(name, secret[i]))
			return false;
	return strncmp(pattern, name, n - 1) == 0;
}

static bool is_kept(const struct web_opts *o, const char *name)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (is_kept_name(kept[i], name))
			return true;
	for (size_t i = 0; i < o->launch_env.n; i++)
		if (strcmp(o->launch_env.v[i], name) == 0)
			return true;
	return false;
}

static void add_each(struct words *words, const char *option, const struct web_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		words_add(words, arena_printf(words->arena, "%s=%s", option, names->v[i]));
}

void launch_settle(struct launch *l)
{
	const struct web_opts *o = &l->web->o;
	struct words words = { .arena = &l->web->arena }, envp = words;
	static char *none[] = { NULL };

	for (char *const *line = environ; *line; line++)
		if (is_kept(o, arena_text(envp.arena, (struct str){ *line, strcspn(*line, "=") })))
			words_add(&envp, *line);
	words_add(&words, arena_text(words.arena, STR("--bounded")));
	add_each(&words, "--include-dir", &o->include_dir);
	add_each(&words, "--may-read", &o->launch_env);
	add_each(&words, "--may-start", &o->launch_command);
	l->envp = envp.v ? envp.v : none;
	l->bounds = words.v;
}

int launch_words(const struct launch *l, char *const *more, struct arena *a, char *const **out,
		 struct err *e)
{
	struct words words = { .arena = a };
	struct buf program = { 0 };
	int rc = program_exec(&program, e);

	if (rc == 0) {
		words_add(&words, arena_text(a, buf_str(&program)));
		words_add(&words, arena_text(a, STR("run")));
		for (; *more; more++)
			words_add(&words, *more);
		for (char *const *bound = l->bounds; *bound; bound++)
			words_add(&words, *bound);
		*out = words.v;
	}
	buf_release(&program);
	return rc;
}

/* ---- asking it ---- */

int launch_ask(const struct web_request *r, struct web_answer *a, char *const *more,
	       struct str input, struct buf *out, struct buf *errors, struct err *e)
{
	struct tool_opts o = {
		.envp = r->web->launch->envp, .input = input, .timeout_s = CHECK_SECONDS,
		.cancel = r->is_gone, .file_bytes_max = CHECK_FILE_BYTES_MAX,
		.memory_bytes_max = CHECK_MEMORY_BYTES_MAX,
	};
	char *const *words;
	int rc = launch_words(r->web->launch, more, r->arena, &words, e);

	if (rc < 0)
		return -1;
	o.argv = (const char *const *)words;
	rc = tool_run_within(&o, out, errors, e);
	if ((rc < 0 && e->code == ERR_LIMIT) || rc >= 128) {
		a->status = 422;
		return err_set(e, ERR_USAGE, "the check of this configuration was ended, because it took "
			       "more than %d s, 1 GiB of memory, or %u MiB for its plan; make the "
			       "configuration smaller", CHECK_SECONDS, CHECK_FILE_BYTES_MAX >> 20);
	}
	if (rc < 0 && e->code == ERR_CANCELLED) { /* for the log: nobody reads it */
		a->status = 408;
		e->code = ERR_USAGE;
	}
	return rc;
}

/* Its place among the checks under way; -1: there is none left, and a is the refusal. */
static int take_place(const struct web_request *r, struct web_answer *a, size_t *at, struct err *e)
{
	struct launch *l = r->web->launch;
	bool is_own = false;

	*at = LAUNCH_CHECKS_MAX;
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < LAUNCH_CHECKS_MAX; i++) {
		is_own = is_own || (l->checking[i].p && str_eq(l->checking[i], r->who));
		if (!l->checking[i].p)
			*at = i;
	}
	if (!is_own && *at < LAUNCH_CHECKS_MAX)
		l->checking[*at] = r->who;
	pthread_mutex_unlock(&l->lock);
	if (!is_own && *at < LAUNCH_CHECKS_MAX)
		return 0;
	a->status = 429;
	web_set_header(r, a, "Retry-After", "1");
	return err_set(e, ERR_USAGE, is_own ? "another configuration of %.*s is being checked; one is "
		       "checked at a time for each user" : "%.*s has to wait, because as many "
		       "configurations are being checked as this dashboard checks at once",
		       (int)r->who.n, r->who.p);
}

int launch_ask_once(const struct web_request *r, struct web_answer *a, char *const *more,
		    struct str input, struct buf *out, struct buf *errors, struct err *e)
{
	struct launch *l = r->web->launch;
	size_t at;
	int rc;

	if (take_place(r, a, &at, e) < 0)
		return -1;
	rc = launch_ask(r, a, more, input, out, errors, e);
	pthread_mutex_lock(&l->lock);
	l->checking[at] = (struct str){ 0 };
	pthread_mutex_unlock(&l->lock);
	return rc;
}
