// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// A zone that is not UTC, so that a test sees where one is taken for the other.
process.env.TZ = 'Asia/Kolkata';

// The tests live with all others, in tests/; what they import lives here.
const top = fileURLToPath(new URL('..', import.meta.url));

export default defineConfig({
	root: top,
	cacheDir: `${top}web/node_modules/.vite`,
	server: { fs: { strict: false } },
	// A test that computes takes longer on a busy machine; only one that hangs is ended.
	test: { globals: true, include: ['tests/web/unit/*.test.ts'], testTimeout: 120_000 },
});
