/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware_tables.c - GPUs, models and ways to keep weights.
 *
 * GPUs: bandwidth and dense arithmetic are those of the makers' data sheets
 * (NVIDIA H100 SXM, H200 SXM, A100 80GB SXM, L4, HGX B200 per GPU; AMD Instinct
 * MI300X), halved where a sheet states them with sparsity. Memory is what drivers
 * report of such a card. The shares are fitted to published measurements, which
 * docs/guide/sim.md names with what the model gives for each; those of MI300X,
 * B200 and L4 are not fitted but assumed from their kin. PCIe is what copies from
 * pinned memory reach of the 31.5 and 63 GB/s of 16 lanes of generation 4 and 5,
 * assumed as 80 to 90 %.
 *
 * Models: the config.json of each on the model hub.
 */
#include <ctype.h>
#include <string.h>

#include "sim/hardware.h"

#define HOPPER .flops = 989.4e12, .flops8 = 1978.9e12, .weights_share = 0.92, .kv_share = 0.90, \
	.flops_share = 0.62, .flops8_share = 0.53, .link = 450e9, .link_s = 8e-6, \
	.step_s = 0.25e-3, .launch_layer_s = 0.26e-3, .pcie = 55e9

static const struct gpu gpus[] = {
	{ .name = "h100-80gb", .memory_gib = 79.1, .bandwidth = 3.35e12, HOPPER },
	{ .name = "h200-141gb", .memory_gib = 139.8, .bandwidth = 4.8e12, HOPPER },
	{ .name = "a100-80gb", .memory_gib = 79.2, .bandwidth = 2.039e12, .flops = 312e12,
	  .weights_share = 0.77, .kv_share = 0.75, .flops_share = 0.60, .link = 300e9,
	  .link_s = 10e-6, .step_s = 0.4e-3, .launch_layer_s = 0.3e-3, .pcie = 25e9,
	  .is_small_default = true },
	{ .name = "l4-24gb", .memory_gib = 22.0, .bandwidth = 0.3e12, .flops = 121e12,
	  .flops8 = 242.5e12, .weights_share = 0.85, .kv_share = 0.75, .flops_share = 0.5,
	  .flops8_share = 0.45, .link = 20e9, .link_s = 30e-6, .step_s = 0.4e-3,
	  .launch_layer_s = 0.3e-3, .pcie = 25e9 },
	{ .name = "mi300x-192gb", .memory_gib = 192.0, .bandwidth = 5.3e12, .flops = 1307.4e12,
	  .flops8 = 2614.9e12, .weights_share = 0.75, .kv_share = 0.65, .flops_share = 0.45,
	  .flops8_share = 0.4, .link = 448e9, .link_s = 12e-6, .step_s = 0.4e-3,
	  .launch_layer_s = 0.3e-3, .pcie = 55e9 },
	{ .name = "b200-192gb", .memory_gib = 178.4, .bandwidth = 8e12, .flops = 2250e12,
	  .flops8 = 4500e12, .flops4 = 9000e12, .weights_share = 0.85, .kv_share = 0.8,
	  .flops_share = 0.6, .flops8_share = 0.45, .link = 900e9, .link_s = 7e-6,
	  .step_s = 0.25e-3, .launch_layer_s = 0.25e-3, .pcie = 55e9 },
};

static const struct shape shapes[] = {
	{ "llama-3.1-8b", "llama-3.1-8b", 32, 4096, 14336, 32, 8, 128, 128256, 1, 1, 131072 },
	{ "llama-3.1-70b", "llama-3.1-70b", 80, 8192, 28672, 64, 8, 128, 128256, 1, 1, 131072 },
	{ "llama-3.1-70b", "llama-3.3-70b", 80, 8192, 28672, 64, 8, 128, 128256, 1, 1, 131072 },
	{ "qwen3-8b", "qwen3-8b", 36, 4096, 12288, 32, 8, 128, 151936, 1, 1, 40960 },
	{ "qwen2.5-7b", "qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, 1, 1, 32768 },
	{ "qwen3-30b-a3b", "qwen3-30b-a3b", 48, 2048, 768, 32, 4, 128, 151936, 128, 8, 40960 },
	{ "mixtral-8x7b", "mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, 8, 2, 32768 },
};

/* vLLM's names; scales of groups are part of the bits. */
static const struct quantization quantizations[] = {
	{ "fp8", 8, 8 }, { "fbgemm_fp8", 8, 8 }, { "ptpc_fp8", 8, 8 }, { "modelopt", 8, 8 },
	{ "experts_int8", 8, 16 }, { "awq", 4.25, 16 }, { "awq_marlin", 4.25, 16 },
	{ "gptq", 4.25, 16 }, { "gptq_marlin", 4.25, 16 }, { "bitsandbytes", 4.5, 16 },
	{ "mxfp4", 4.25, 16 }, { "modelopt_fp4", 4.5, 4 },
};

/* What parts of models' names say. */
static const struct { const char *part, *name; } named[] = {
	{ "nvfp4", "modelopt_fp4" }, { "fp8", "fp8" }, { "awq", "awq" }, { "gptq", "gptq" },
	{ "-fp4", "modelopt_fp4" }, { "w4a16", "gptq" }, { "int4", "gptq" },
};

const char *const hardware_gpus[] = {
	"h100-80gb", "h200-141gb", "a100-80gb", "l4-24gb", "mi300x-192gb", "b200-192gb", NULL,
};

const char *const hardware_shapes[] = {
	"llama-3.1-8b", "llama-3.1-70b", "qwen3-8b", "qwen2.5-7b", "qwen3-30b-a3b", "mixtral-8x7b",
	NULL,
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

const struct gpu *hardware_gpu(const char *name)
{
	for (size_t i = 0; i < COUNT(gpus); i++)
		if (strcmp(gpus[i].name, name) == 0)
			return &gpus[i];
	return NULL;
}

const struct shape *hardware_shape(const char *name)
{
	for (size_t i = 0; i < COUNT(shapes); i++)
		if (strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	return NULL;
}

/* Whether text has part in it, whatever the case of its letters; part is in lower case. */
static bool has_part(const char *text, const char *part)
{
	size_t n = strlen(part);

	for (; *text; text++) {
		size_t i = 0;

		while (i < n && tolower((unsigned char)text[i]) == part[i])
			i++;
		if (i == n)
			return true;
	}
	return false;
}

const struct shape *hardware_shape_of(const char *model)
{
	for (size_t i = 0; i < COUNT(shapes); i++)
		if (has_part(model, shapes[i].like))
			return &shapes[i];
	return NULL;
}

const struct quantization *hardware_quantization(const char *name)
{
	for (size_t i = 0; i < COUNT(quantizations); i++)
		if (strcmp(quantizations[i].name, name) == 0)
			return &quantizations[i];
	return NULL;
}

const struct quantization *hardware_quantization_of(const char *model)
{
	for (size_t i = 0; i < COUNT(named); i++)
		if (has_part(model, named[i].part))
			return hardware_quantization(named[i].name);
	return NULL;
}
