/* SPDX-License-Identifier: Apache-2.0 */
/* config_know.c - see config.h: the machine, as far as a configuration is judged by it. */
#include "experiment/config.h"
#include "gpu/gpu.h"

static void know_gpu(struct config_know *know, const struct gpu *gpu)
{
	unsigned least = know->compute_capability, here = 0;

	if (gpu->capability_major >= 0)
		here = (unsigned)(gpu->capability_major * 10 + gpu->capability_minor);
	know->n_gpus++;
	know->is_amd |= gpu->maker == GPU_AMD;
	if (here && (!least || here < least))
		know->compute_capability = here;
}

void config_know_gpus(struct config_know *know)
{
	struct gpu_set *gpus = gpu_open(NULL);
	size_t n;
	const struct gpu *gpu = gpu_list(gpus, &n);

	know->is_gpus_known = true;
	for (size_t i = 0; i < n; i++)
		if (gpu[i].is_allowed && !gpu[i].is_split)
			know_gpu(know, &gpu[i]);
	gpu_close(gpus);
}
