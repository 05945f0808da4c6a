/* SPDX-License-Identifier: Apache-2.0 */
/* web/static.h - files that lie in the program (tools/app-assets.sh). */
#pragma once
#include <stdint.h>

#include "base/str.h"

/* A NULL name ends them; there are none in a build without pages. gzip. */
struct web_asset {
	const char *name;             /* below the root: "assets/index-4f2a.js" */
	const char *packed;
	uint64_t packed_bytes, bytes;
};
extern const struct web_asset web_assets[];
/* Configurations to begin with: examples/NAME.yaml. */
extern const struct web_asset web_examples[];

/* Content-Type by the end of a name. */
const char *static_type(struct str name);
