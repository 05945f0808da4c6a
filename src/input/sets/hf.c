/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf.c - the classes of hub datasets, and the common steps from rows to requests; see hf.h.
 *
 * A class is recognized by --dataset-path or --hf-name, in the order of the table. Upstream refuses
 * datasets outside the table; here the last row takes any data with text, with a note.
 */
#include "input/sets/hf.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "core/base/mem.h"
#include "input/chat/chat.h"
#include "input/sets/multi_turn.h"

#define NAMES (const char *const[])

static const struct hf_class classes[] = {
	{
		.name = "VisionArena", .gate = HF_MEDIA, .has_chat_form = true,
		.ids = NAMES{ "lmarena-ai/VisionArena-Chat", "lmarena-ai/vision-arena-bench-v0.1", NULL },
		.columns = NAMES{ "images", "conversation", "turns", NULL },
		.split = "train", .has_no_subset = true, .output_len = 128, .is_row_index = true,
		.draft = hf_draft_vision_arena, .make_media = hf_make_media,
	}, {
		.name = "MMVU", .ids = NAMES{ "yale-nlp/MMVU", NULL }, .has_chat_form = true,
		.columns = NAMES{ "question", "choices", "video", NULL },
		.split = "validation", .has_no_subset = true, .output_len = 128, .is_row_index = true,
		.draft = hf_draft_mmvu, .make_media = hf_make_media,
	}, {
		.name = "InstructCoder", .ids = NAMES{ "likaixin/InstructCoder", NULL },
		.columns = NAMES{ "instruction", "input", NULL },
		.split = "train", .output_len = 200, .is_templated = true, .is_row_index = true,
		.draft = hf_draft_instruct_coder,
	}, {
		.name = "MTBench", .ids = NAMES{ "philschmid/mt-bench", NULL },
		.columns = NAMES{ "turns", NULL },
		.split = "train", .output_len = 256, .is_templated = true, .is_row_index = true,
		.draft = hf_draft_mt_bench,
	}, {
		.name = "HumanEval", .ids = NAMES{ "openai/openai_humaneval", NULL },
		.columns = NAMES{ "prompt", NULL },
		.split = "test", .output_len = 256, .is_templated = true, .is_row_index = true,
		.draft = hf_draft_human_eval,
	}, {
		.name = "GSM8K", .ids = NAMES{ "openai/gsm8k", NULL },
		.columns = NAMES{ "question", NULL }, .subset = "main",
		.split = "test", .output_len = 256, .is_templated = true, .is_row_index = true,
		.draft = hf_draft_gsm8k,
	}, {
		.name = "MultiModalConversation", .ids = NAMES{ "lmms-lab/LLaVA-OneVision-Data", NULL },
		.columns = NAMES{ "conversations", "image", NULL },
		.gate = HF_MEDIA, .has_chat_form = true, .prompt_max = 1024, .total_max = 2048,
		.draft = hf_draft_multimodal_conversation, .make_media = hf_make_media,
	}, {
		.name = "Conversation", .ids = NAMES{ "Aeala/ShareGPT_Vicuna_unfiltered", NULL },
		.columns = NAMES{ "conversations", NULL },
		.has_chat_form = true, .prompt_max = 1024, .total_max = 2048,
		.draft = hf_draft_conversation,
	}, {
		.name = "AIMO",
		.ids = NAMES{ "AI-MO/aimo-validation-aime", "AI-MO/NuminaMath-1.5",
			      "AI-MO/NuminaMath-CoT", NULL },
		.columns = NAMES{ "problem", "solution", NULL },
		.split = "train", .prompt_max = 2048, .total_max = 32000, .draft = hf_draft_aimo,
	}, {
		.name = "NextEditPrediction", .ids = NAMES{ "zed-industries/zeta", NULL },
		.columns = NAMES{ "events", "input", "output", NULL },
		.split = "train", .is_output_fixed = true, .is_row_index = true,
		.draft = hf_draft_next_edit,
	}, {
		.name = "ASR", .gate = HF_MEDIA,
		.ids = NAMES{ "openslr/librispeech_asr", "facebook/voxpopuli", "LIUM/tedlium",
			      "edinburghcstr/ami", "speechcolab/gigaspeech", "kensho/spgispeech",
			      "ArtificialAnalysis/Earnings22-Cleaned-AA",
			      "D4nt3/esb-datasets-earnings22-validation-tiny-filtered", NULL },
		.columns = NAMES{ "audio", "url", NULL }, .split = "train", .output_len = 1024,
		.open = hf_open_asr, .draft = hf_draft_asr, .make_media = hf_make_audio,
		.finish = hf_finish_asr,
	}, {
		.name = "Blazedit", .ids = NAMES{ "vdaita/edit_5k_char", "vdaita/edit_10k_char", NULL },
		.columns = NAMES{ "code", "change_request", "norm_distance", NULL },
		.split = "train", .output_len = 4000, .is_templated = true, .is_row_index = true,
		.draft = hf_draft_blazedit,
	}, {
		.name = "MLPerf",
		.ids = NAMES{ "mgoin/mlperf-inference-llama2-data",
			      "mgoin/mlperf-inference-llama3.1-data", NULL },
		.columns = NAMES{ "system_prompt", "question", "output", NULL },
		.split = "train", .prompt_max = 1024, .total_max = 2048, .is_always_filtered = true,
		.is_rendered = true, .draft = hf_draft_mlperf,
	}, {
		.name = "MMStar", .ids = NAMES{ "Lin-Chen/MMStar", NULL }, .gate = HF_MEDIA,
		.columns = NAMES{ "question", "image", NULL }, .has_chat_form = true,
		.split = "val", .has_no_subset = true, .output_len = 128, .is_row_index = true,
		.draft = hf_draft_mmstar, .make_media = hf_make_media,
	}, {
		.name = "BFCL", .gate = HF_CHAT, .has_no_subset = true, .output_len = 512,
		.ids = NAMES{ "gorilla-llm/Berkeley-Function-Calling-Leaderboard", NULL },
		.open = hf_open_bfcl, .draft = hf_draft_bfcl, .finish = hf_finish_bfcl,
	}, {
		.name = "text", .output_len = 128, .prompt_max = SIZE_MAX, .total_max = INT64_MAX,
		.is_output_unchecked = true, .draft = hf_draft_any, .finish = hf_finish_any,
	},
};
#define CLASSES (sizeof(classes) / sizeof(*classes))

static const char *known_by(const struct hf_class *c, const char *name)
{
	for (const char *const *id = c->ids; name && id && *id; id++)
		if (strcmp(*id, name) == 0)
			return *id;
	return NULL;
}

static const struct hf_class *find_class(const struct dataset_opts *o, const char **id)
{
	*id = NULL;
	for (const struct hf_class *c = classes; !o->hf_text_column && c->ids; c++) {
		*id = known_by(c, o->path);
		if (!*id)
			*id = known_by(c, o->hf_name);
		if (*id)
			return c;
	}
	return &classes[CLASSES - 1];
}

static bool is_templated_for(const struct dataset_opts *o)
{
	const char *id;
	const struct hf_class *c = find_class(o, &id);

	return !o->multi_turn && (c->is_templated || c->is_rendered);
}

/* ---- before anything is loaded ---- */

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	const char *id, *backends, *backend = env->backend ? env->backend : "";
	const struct hf_class *c = find_class(o, &id);
	bool is_chat = strcmp(backend, "openai-chat") == 0;

	if (o->multi_turn)
		return multi_turn_check("hf", o, env, e);
	if (c->gate == HF_CHAT && !is_chat)
		return err_set(e, ERR_USAGE, "%s datasets need --backend openai-chat, not %s: only chat "
			       "requests carry tools", c->name, backend);
	if (c->gate == HF_MEDIA && env->is_offline && !dataset_carries_media(env, &backends))
		return err_set(e, ERR_USAGE, "Multi-modal content is not supported on backend '%.100s'; "
			       "use one of %s.", backend, backends);
	if (c->gate == HF_MEDIA && !env->is_offline && !dataset_sends_messages(env) &&
	    strcmp(backend, "openai-audio") != 0 &&
	    !strstr(backend, "embeddings-"))
		return err_set(e, ERR_USAGE, "%s datasets are multi-modal, which only --backend "
			       "openai-chat, openai-audio and those of embeddings-* carry, not %s",
			       c->name, backend);
	if (c->is_rendered && !env->render)
		return err_set(e, ERR_USAGE, "%s prompts are a system and a user message in the "
			       "model's chat template, which cannot be applied here: the template "
			       "is not known, and no server is used", c->name);
	return 0;
}

/* Notes options of other classes. */
static void note_other_classes(struct hf *h)
{
	const struct dataset_opts *o = h->opts;
	const struct { const char *option; hf_draft_fn *draft; bool is_asked; } rows[] = {
		{ "bfcl-categories", hf_draft_bfcl, o->bfcl_categories != NULL },
		{ "blazedit-min-distance", hf_draft_blazedit, o->blazedit_min_distance != 0 },
		{ "blazedit-max-distance", hf_draft_blazedit, o->blazedit_max_distance != 1 },
		{ "asr-min-audio-len-sec", hf_draft_asr, o->asr_min_audio_len_sec != 0 },
		{ "asr-max-audio-len-sec", hf_draft_asr, !isinf(o->asr_max_audio_len_sec) },
		{ "custom-ensure-client-side-data", hf_draft_mmvu,
		  o->custom_ensure_client_side_data },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].is_asked && h->class->draft != rows[i].draft)
			dataset_note(h->w, "--%s has no effect on %s datasets", rows[i].option,
				     h->class->name);
	if (o->hf_split && h->class->draft == hf_draft_bfcl)
		dataset_note(h->w, "--hf-split has no effect on %s datasets", h->class->name);
}

/* Notes options without effect on this class. */
static void note_unused(struct hf *h)
{
	const struct dataset_opts *o = h->opts;
	const char *name = h->class->name;

	if (h->class->has_no_subset && o->hf_subset)
		dataset_note(h->w, "--hf-subset has no effect on %s datasets", name);
	if (h->class->is_output_fixed && o->hf_output_len.is_set)
		dataset_note(h->w, "--hf-output-len has no effect on %s datasets: each request asks for "
			     "as many tokens as its expected answer has", name);
	if (h->class->is_rendered && o->skip_chat_template)
		dataset_note(h->w, "--skip-chat-template has no effect on %s datasets", name);
	if (o->enable_multimodal_chat && !h->class->has_chat_form &&
	    h->class->draft != hf_draft_asr)
		dataset_note(h->w, "--enable-multimodal-chat has no effect on %s datasets", name);
	note_other_classes(h);
}

/* ---- rows to requests ---- */

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct hf *h = self;
	const struct hf_class *c = h->class;
	bool is_fixed = h->opts->hf_output_len.is_set && !c->is_output_fixed;
	struct hf_row row;
	int rc = hf_next_row(h, i, &row, e);

	if (rc == 0)
		h->take.rows = i; /* there is no such row, nor any after it */
	if (rc <= 0)
		return rc;
	if (row.object.kind != JSON_OBJECT)
		return hf_refuse(&row, e, "a row must be an object");
	d->sample.output_len = is_fixed ? h->opts->hf_output_len.v : c->output_len;
	buf_reset(&h->text);
	rc = c->draft(&row, a, d, e);
	if (rc <= 0)
		return rc;
	if (is_fixed)
		d->answer = (struct str){ 0 };
	if (c->is_templated && h->env->chat) {
		chat_apply(h->env->chat, d->sample.prompt, &h->text);
		d->sample.prompt = hf_built(&row, a);
	}
	return 1;
}

/*
 * Ids made of row numbers have gaps where rows were left out, and copies are numbered after the
 * accepted rows. If the two would collide, which upstream refuses, ids count the accepted rows
 * instead.
 */
static void number(struct hf *h)
{
	struct workload *w = h->w;
	size_t prefix = strlen(h->env->request_id_prefix);
	uint64_t wanted = h->env->num_prompts > 0 ? (uint64_t)h->env->num_prompts : 0;
	bool is_clear = h->opts->no_oversample || w->n >= wanted;

	for (size_t i = h->first; i < w->n && !is_clear; i++) {
		struct str id = w->v[i].request_id;
		uint64_t place;

		id = (struct str){ id.p + prefix, id.n - prefix };
		if (!str_to_u64(id, &place) || place < w->n || place >= wanted)
			continue;
		for (size_t j = h->first; j < w->n; j++)
			w->v[j].request_id = dataset_request_id(w, h->env, j);
		is_clear = true;
	}
}

static int take(struct hf *h, struct compat_rng *rng, struct err *e)
{
	const struct hf_class *c = h->class;
	bool is_filtered = c->is_always_filtered || !h->opts->hf_output_len.is_set || !c->ids;
	struct dataset_opts once = *h->opts;
	struct dataset_env env = *h->env;

	h->take = (struct take){
		.self = h, .rows = SIZE_MAX, .draft = draft, .make_media = c->make_media,
		.has_chat_form = c->has_chat_form, .takes_all = true,
		.is_row_index = c->is_row_index, .is_output_unchecked = c->is_output_unchecked,
		.prompt_max = is_filtered ? c->prompt_max : 0, .total_max = c->total_max,
	};
	once.no_oversample = true; /* not before ids are settled */
	if (env.num_prompts <= 0)
		env.progress = NULL; /* how many there will be is not known */
	if (dataset_take(&h->take, &once, &env, rng, h->w, e) < 0)
		return -1;
	number(h);
	if (c->finish)
		c->finish(h);
	dataset_note_media(h->w, h->env);
	return dataset_oversample(h->w, h->opts, h->env, rng, e);
}

/* ---- whole conversations: --multi-turn ---- */

static int next_talk(void *self, size_t i, struct json_slice *row, struct err *e)
{
	struct hf_row next;
	int rc = hf_next_row(self, i, &next, e);

	if (rc > 0)
		*row = next.object;
	return rc;
}

static int take_talks(struct hf *h, struct compat_rng *rng, struct err *e)
{
	const struct multi_turn_talks talks = {
		.name = h->opts->path, .next = next_talk, .self = h,
		.output_len = h->opts->hf_output_len,
	};

	return multi_turn_talks(&talks, h->opts, h->env, rng, h->w, e);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct hf h = { .opts = o, .env = env, .w = w, .first = w->n };
	struct hf_class talks = {
		.name = "conversation", .columns = NAMES{ "conversations", "conversation", "messages", NULL },
	};
	int rc;

	h.class = find_class(o, &h.id);
	talks.ids = h.class->ids;
	talks.subset = h.class->subset;
	talks.split = h.class->split;
	if (o->multi_turn)
		h.class = &talks;
	h.where = (struct source_opts){
		.path = o->path, .revision = o->hf_revision, .cancel = env->cancel,
		.subset = h.class->has_no_subset ? NULL :
			  o->hf_subset ? o->hf_subset : h.class->subset,
		.split = o->hf_split ? o->hf_split : h.class->split,
		.progress = env->download, .note = env->note, .self = env->self,
	};
	note_unused(&h);
	rc = h.class->open ? h.class->open(&h, e) : hf_open_split(&h, e);
	if (rc == 0)
		rc = o->multi_turn ? take_talks(&h, rng, e) : take(&h, rng, e);
	hf_close_rows(&h);
	buf_release(&h.text);
	free(h.own);
	return rc;
}

static const char *const options[] = {
	"disable-shuffle", "no-stream", "no-oversample", "skip-chat-template",
	"enable-multimodal-chat", "custom-ensure-client-side-data",
	"hf-subset", "hf-split", "hf-name", "hf-output-len", "hf-text-column", "hf-revision",
	"bfcl-categories", "blazedit-min-distance", "blazedit-max-distance",
	"asr-min-audio-len-sec", "asr-max-audio-len-sec",
	"chat-template-kwargs", "chat-prefix", "chat-suffix",
	"multi-turn", "multi-turn-min-turns", "multi-turn-max-turns",
	"multi-turn-concurrency", "multi-turn-delay-ms", "multi-turn-delay-dist", NULL,
};

const struct dataset dataset_hf = {
	.name = "hf", .summary = "datasets of the Hugging Face hub, or of a folder like one",
	.options = options, .needs_path = true, .needs_tokenizer = true, .takes_all = true,
	.is_templated = true, .is_templated_for = is_templated_for,
	.check = check, .build = build,
};
