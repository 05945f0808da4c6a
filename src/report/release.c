/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - see release.h. */
#include "report/release.h"

static const char *const generation_keys[] = {
	"failed", "latencies", "start_times", "queue_times", "rtfx", "probe_completed",
	"probe_failed", "probe_median_e2el_ms", "probe_p99_e2el_ms", "probe_max_e2el_ms",
	"spec_decode_acceptance_rate", "spec_decode_acceptance_length", "spec_decode_num_drafts",
	"spec_decode_draft_tokens", "spec_decode_accepted_tokens",
	"spec_decode_per_position_acceptance_rates", "diffusion_committed_throughput",
	"diffusion_steps_per_canvas", "diffusion_committed_per_step",
	"diffusion_committed_tokens", "diffusion_denoising_steps", "diffusion_canvas_positions",
	NULL,
};

static const char *const pooling_keys[] = {
	"total_input_sequences", "input_sequence_throughput", "latencies", "queue_times",
	"probe_completed", "probe_failed", "probe_median_e2el_ms", "probe_p99_e2el_ms",
	"probe_max_e2el_ms", NULL,
};

const char *const *release_missing_keys(bool is_pooling)
{
	return is_pooling ? pooling_keys : generation_keys;
}

/* How lines begin, and what they begin with in that release; NULL: it had no such line. */
static const struct { const char *now, *then; } lines[] = {
	{ "Failed requests", NULL },
	{ "Error ", NULL },
	{ "Input throughput", NULL },
	{ "RTFx", NULL },
	{ "------------------Probe Requests", NULL },
	{ "Probe requests", NULL },
	{ "Median probe", NULL },
	{ "P99 probe", NULL },
	{ "Max probe", NULL },
	{ "Total token throughput (tok/s):", "Total Token throughput (tok/s):" },
};

void release_terminal(struct buf *out, size_t at)
{
	struct buf kept = { 0 };
	struct str rest;

	if (out->len <= at)
		return;
	rest = (struct str){ out->data + at, out->len - at };
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t i = 0, n = sizeof(lines) / sizeof(*lines);

		while (i < n && !str_starts(line, str_of(lines[i].now)))
			i++;
		if (i < n && !lines[i].then)
			continue;
		if (i < n) {
			buf_add_text(&kept, lines[i].then);
			line.p += strlen(lines[i].now);
			line.n -= strlen(lines[i].now);
		}
		buf_add_str(&kept, line);
		buf_add_char(&kept, '\n');
	}
	out->len = at;
	buf_add_str(out, buf_str(&kept));
	buf_release(&kept);
}
