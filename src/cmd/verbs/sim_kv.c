/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_kv.c - see sim_cli.h: whom the server works with. Roles, vLLM's --kv-transfer-config and its
 * host tiers, servers behind a proxy.
 */
#include <math.h>

#include "cmd/verbs/sim_cli.h"
#include "core/json/read.h"

/* Of a model without known hardware: an 8B model's, over PCIe 4. */
#define TOKEN_BYTES 131072.0
#define LINK_BYTES_PER_S 25e9

struct connector {
	struct str name;
	const struct json_value *extra;
};

static const char *const roles[] = { "kv_producer", "kv_consumer", "kv_both" };

static int connector_read(const struct sim_cli *c, struct connector *out, struct kv_opts *kv,
			  struct arena *a, struct err *e)
{
	const struct json_value *v;
	struct json_value *config;
	struct str role;
	size_t i = 0;

	if (!c->kv_transfer.text)
		return 0;
	if (json_parse(a, str_of(c->kv_transfer.text), &config, e) < 0)
		return err_wrap(e, "--kv-transfer-config");
	v = config;
	out->name = json_text(json_get(v, "kv_connector"), (struct str){ 0 });
	out->extra = json_get(v, "kv_connector_extra_config");
	role = json_text(json_get(v, "kv_role"), (struct str){ 0 });
	while (i < 3 && !str_is(role, roles[i]))
		i++;
	if (out->name.n && i == 3)
		return err_set(e, ERR_USAGE, "--kv-transfer-config: kv_connector needs kv_role, one of "
			       "kv_producer, kv_consumer, kv_both, got '%.*s'", (int)role.n,
			       role.n ? role.p : "");
	if (i < 3)
		kv->role = (enum kv_role)(i + 1);
	return 0;
}

static double real_of(const struct json_value *object, const char *key)
{
	return json_real(json_get(object, key), 0);
}

/* Bytes of all of the model's layers. */
static double token_bytes(const struct sim_cli *c, const struct sim_setup *s)
{
	return s->has_hardware ? s->hw.kv_token_bytes * (double)(c->tp * c->pp) : TOKEN_BYTES;
}

static double tier_tokens(const struct sim_cli *c, const struct connector *k,
			  const struct sim_setup *s)
{
	const char *lmcache = getenv("LMCACHE_MAX_LOCAL_CPU_SIZE");
	double gib = c->kv_offloading.is_set ? c->kv_offloading.v : 0;
	double bytes = gib * GIB;

	if (str_is(k->name, "OffloadingConnector") && real_of(k->extra, "num_cpu_blocks") > 0)
		return real_of(k->extra, "num_cpu_blocks") * (double)c->block_size;
	if (str_is(k->name, "OffloadingConnector") && bytes <= 0)
		bytes = real_of(k->extra, "cpu_bytes_to_use");
	if (str_starts(k->name, STR("LMCache")) && bytes <= 0) {
		gib = 5; /* LMCache's own default, GB */
		if (lmcache && str_to_f64(str_of(lmcache), &gib) && gib < 0)
			gib = 0;
		bytes = gib * 1e9;
	}
	return bytes / token_bytes(c, s);
}

/* LMCache is told of its server by the environment. */
static const char *cache_url(const struct sim_cli *c, const struct connector *k)
{
	const char *lmcache = getenv("LMCACHE_REMOTE_URL");

	if (c->kv_cache_url || !str_starts(k->name, STR("LMCache")) || !lmcache || !*lmcache)
		return c->kv_cache_url;
	return lmcache;
}

static int role_apply(const struct sim_cli *c, struct sim_setup *out, struct err *e)
{
	struct kv_opts *kv = &out->sim.kv;
	bool has_urls = c->prefill_urls.n || c->decode_urls.n || c->backend_urls.n;

	out->sim.is_proxy = c->role && strcmp(c->role, "proxy") == 0;
	if (has_urls && !out->sim.is_proxy)
		return err_set(e, ERR_USAGE, "--%s-url is a proxy's: --role proxy is missing",
			       c->prefill_urls.n ? "prefill" : c->decode_urls.n ? "decode" : "backend");
	if (c->role && strcmp(c->role, "prefill") == 0)
		kv->role = KV_PRODUCER;
	if (c->role && strcmp(c->role, "decode") == 0)
		kv->role = KV_CONSUMER;
	kv->is_cache_server = c->role && strcmp(c->role, "cache") == 0;
	if (kv->is_cache_server)
		kv->host_tokens = c->kv_cache_tokens;
	out->sim.proxy = (struct proxy_opts){
		.prefill = c->prefill_urls.v, .prefills = c->prefill_urls.n,
		.decode = c->decode_urls.v, .decodes = c->decode_urls.n,
		.backend = c->backend_urls.v, .backends = c->backend_urls.n,
		.kv_host = c->kv_host, .prefill_kv_port = (unsigned)c->prefill_kv_port,
		.decode_kv_port = (unsigned)c->decode_kv_port, .timeout_s = c->proxy_timeout_s,
	};
	return 0;
}

int sim_kv_setup(const struct sim_cli *c, struct arena *a, struct sim_setup *out, struct err *e)
{
	struct kv_opts *kv = &out->sim.kv;
	struct connector k = { 0 };
	bool is_oracle = c->ttft_ms || c->itl_ms || c->burst_ms > 0;
	double tokens;

	if (connector_read(c, &k, kv, a, e) < 0 || role_apply(c, out, e) < 0)
		return -1;
	kv->is_decode_bench = str_is(k.name, "DecodeBenchConnector");
	tokens = tier_tokens(c, &k, out);
	if (!kv->is_cache_server && tokens >= 1)
		kv->host_tokens = tokens < 1e12 ? (int64_t)tokens : (int64_t)1e12;
	kv->cache_url = cache_url(c, &k);
	if (c->kv_transfer_us.is_set)
		kv->us_per_token = c->kv_transfer_us.v;
	else if (out->has_hardware)
		kv->us_per_token = out->hw.kv_token_bytes / out->hw.gpu->pcie * 1e6;
	else
		kv->us_per_token = TOKEN_BYTES / LINK_BYTES_PER_S * 1e6;
	if (is_oracle && (kv->role != KV_ALONE || kv->host_tokens || kv->cache_url) &&
	    !kv->is_cache_server)
		buf_add_text(&out->notes, "the oracle paces by what it is told: KV caches from elsewhere "
					  "have no effect\n");
	return 0;
}
