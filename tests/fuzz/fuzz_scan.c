/* SPDX-License-Identifier: Apache-2.0 */
/* The key scanner must agree with the tree on every text. */
// LINKS: json
#include <stdlib.h>

#include "../unit/json_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *differs = check_scan((struct str){ (const char *)data, size });

	if (differs) {
		fprintf(stderr, "differs: %s\n", differs);
		abort();
	}
	return 0;
}
