/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - the table of APIs; a new one is a file and a row. */
#include "client/endpoint/endpoint.h"

#include "client/endpoint/event.h"

extern const struct endpoint endpoint_vllm, endpoint_openai, endpoint_chat, endpoint_null;
extern const struct endpoint endpoint_responses;
extern const struct endpoint endpoint_audio, endpoint_embeddings, endpoint_embeddings_chat,
	endpoint_embeddings_clip, endpoint_embeddings_vlm2vec, endpoint_infinity,
	endpoint_infinity_clip, endpoint_pooling, endpoint_rerank;
/* Native APIs of other servers. */
extern const struct endpoint endpoint_anthropic, endpoint_tgi, endpoint_llamacpp, endpoint_sglang,
	endpoint_ollama, endpoint_ollama_chat;

static const struct endpoint *const table[] = {
	&endpoint_vllm, &endpoint_openai, &endpoint_chat, &endpoint_responses,
	&endpoint_audio, &endpoint_embeddings, &endpoint_embeddings_chat,
	&endpoint_embeddings_clip, &endpoint_embeddings_vlm2vec, &endpoint_infinity,
	&endpoint_infinity_clip, &endpoint_pooling, &endpoint_rerank,
	&endpoint_anthropic, &endpoint_tgi, &endpoint_llamacpp, &endpoint_sglang,
	&endpoint_ollama, &endpoint_ollama_chat,
	&endpoint_null,
};

const struct endpoint *endpoint_find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

int endpoint_check_url(const struct endpoint *ep, const char *url, struct err *e)
{
	if (str_ends(str_of(url), str_of(ep->suffix)) ||
	    (ep->other_suffix && str_ends(str_of(url), str_of(ep->other_suffix))))
		return 0;
	return err_set(e, ERR_USAGE, "--endpoint: the %s of --backend %s needs a URL that ends with "
		       "%s%s%s (usually --endpoint %s), got %.300s", ep->api_name, ep->name, ep->suffix,
		       ep->other_suffix ? " or " : "", ep->other_suffix ? ep->other_suffix : "",
		       ep->default_path, url);
}

static enum finish_reason finish_of(struct json_slice reason)
{
	static const struct { const char *word; enum finish_reason reason; } words[] = {
		{ "stop", FINISH_STOP }, { "length", FINISH_LENGTH },
		{ "tool_calls", FINISH_TOOL_CALLS }, { "function_call", FINISH_TOOL_CALLS },
		{ "content_filter", FINISH_CONTENT_FILTER },
		{ "abort", FINISH_ABORT }, { "error", FINISH_ERROR },
		/* OpenAI responses */
		{ "completed", FINISH_STOP }, { "max_output_tokens", FINISH_LENGTH },
		/* Anthropic */
		{ "end_turn", FINISH_STOP }, { "stop_sequence", FINISH_STOP },
		{ "max_tokens", FINISH_LENGTH }, { "tool_use", FINISH_TOOL_CALLS },
		{ "refusal", FINISH_CONTENT_FILTER },
		/* TGI, llama.cpp */
		{ "eos_token", FINISH_STOP }, { "eos", FINISH_STOP }, { "word", FINISH_STOP },
		{ "limit", FINISH_LENGTH },
	};

	for (size_t i = 0; reason.kind == JSON_STRING && i < sizeof(words) / sizeof(*words); i++)
		if (str_is(reason.raw, words[i].word))
			return words[i].reason;
	return FINISH_OTHER;
}

void event_ended(struct json_slice reason, struct decoded *out)
{
	if (!event_has(reason))
		return;
	out->bits |= DECODED_FINISH;
	out->finish = finish_of(reason);
	if (out->finish == FINISH_ABORT || out->finish == FINISH_ERROR)
		out->bits |= DECODED_ABORTED;
}
