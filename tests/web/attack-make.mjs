// SPDX-License-Identifier: Apache-2.0
// attack-make.mjs: requests made from an OpenAPI document. A valid one has only what its schemas allow,
// with columns, values, numbers and names that answers gave before; a mutation then changes one of its
// parts. Everything is drawn from one generator, so a seed gives the same requests.

/** Numbers in [0, 1): mulberry32. */
export function source(seed) {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = Math.imul(state ^ (state >>> 15), state | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}

/** JSON that no value of JavaScript is: 1e999, a lone surrogate, 100,000 brackets. */
class Raw {
	constructor(text) {
		this.text = text;
	}
}

export function json(value) {
	if (value instanceof Raw)
		return value.text;
	if (Array.isArray(value))
		return `[${value.map(json).join(',')}]`;
	if (value && typeof value === 'object')
		return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}:${json(v)}`)
			.join(',')}}`;
	return JSON.stringify(value) ?? 'null';
}

const edges = [0, 1, -1, 2, 3, 20, 24, 50, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 1000, 1001,
	1024,
	2000, 2001, 4095, 4096, 8192, 8193, 10000, 10001, 65535, 65536, 65537, 2 ** 31 - 1, 2 ** 31, 2 ** 32,
	2 ** 53, 2 ** 53 + 2, -(2 ** 31), -(2 ** 53), 0.5, -0.25, 1e-300, 1e308, -1e308];
const odd_numbers = ['9223372036854775807', '9223372036854775808', '-9223372036854775809', '1e999', '-1e999',
	'18446744073709551616', '-0', '0.1e-400', '1E+2', '00', '01', '.5', '1.', '+1', 'NaN', 'Infinity',
	`1${'0'.repeat(400)}`, `0.${'3'.repeat(5000)}`];
const odd_texts = ['', ' ', '*', 'null', 'true', '0', '-1', 'inf', '-inf', 'nan', '\u0000', 'a\u0000b', '\n',
	'\r\n',
	'\u007f', '\u0085', '\u2028', '\ufeff', '\ufffd', '\u{10ffff}', 'é'.repeat(40), '%', '%00', '%s%n',
		'${HOME}', '../..',
	'/etc/passwd', "'", '"', "' OR 1=1 --", '"; DROP TABLE documents; --', '$1', '\\', '<script>', '=1+1',
		'__proto__',
	'constructor', 'id', 'ID', 'rowid', 'run_id ', 'server.', '.model', 'a'.repeat(129),
		'x'.repeat(70000)];
const odd_raw = ['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\x"', '"', "'a'", '"\t"', '// x',
	'{"a":1,"a":2}',
	'{"__proto__":1}', '[1,]', '{"a"}', 'tru', 'nul', '\ufeff1'];

function deep(open, close, n, inside = '1') {
	return new Raw(open.repeat(n) + inside + close.repeat(n));
}

export const quick_config = 'name: quick\nserver: { command: sim, model: sim, ttft_ms: 1, itl_ms: 1 }\n'
	+ 'benchmark: { dataset_name: random, tokenizer: sim, random_input_len: 8, random_output_len: 4,'
	+ ' num_prompts: 2 }\n';
const configs = [quick_config, 'name: x\n', '{}', 'server: { modell: x }\n', 'a: [[[[[[[[[1]]]]]]]]]\n',
	`a: ${'['.repeat(5000)}\n`, `${'{'.repeat(5000)}\n`, 'a: &a [*a]\n', 'a: &a [1]\nb: [*a, *a]\n',
		'include: nothing.yaml\n',
	'name: "${HOME}"\n', 'name: "\\ud800"\n', '\t\n', '%YAML 9.9\n---\n', '!!python/object x\n',
		'x'.repeat(100000),
	`${quick_config}matrix: { benchmark.num_prompts: [1, 2, 3, 4, 5, 6, 7, 8, 9] }\n`];

/** Which names of members and parameters hold names of columns. */
const column_names = new Set(['column', 'columns', 'metric', 'metrics', 'x', 'y', 'by', 'facets',
	'statistics',
	'group', 'color', 'series', 'parameters', 'configuration', 'guards', 'sort']);
const numeric_names = new Set(['metric', 'metrics', 'x', 'y', 'statistics', 'guards']);
/** What a path's {id} is a number or name of, by the path. */
const pool_of_path = [[/\/experiments\//, 'runs'], [/\/annotations\//, 'annotations'], [/\/presets\//,
	'presets'],
	[/\/marks\//, 'marks'], [/\/traces\//, 'traces'], [/\/status\//, 'jobs'], [/\/jobs\//, 'jobs']];

/** What answers have given: { name: list }. */
export function new_world() {
	return { columns: [], runs: [], annotations: [], presets: [], marks: [], traces: [], jobs: [],
		cursors: [], series: [], commits: [], documents: [], launched: 0, created: 0, token: '' };
}

/** The routes of a document: { method, form, operation, name }. */
export function operations_of(api) {
	return Object.entries(api.paths).flatMap(([form, operations]) => Object.entries(operations)
		.map(([method, operation]) => ({ method: method.toUpperCase(), form, operation,
			name: `${method.toUpperCase()} ${form}` })));
}

export class Maker {
	constructor(api, world, random) {
		Object.assign(this, { api, world, random });
	}

	below(n) {
		return Math.floor(this.random() * n);
	}

	is(share) {
		return this.random() < share;
	}

	pick(list) {
		return list[this.below(list.length)];
	}

	// ---- values of schemas ----

	/** How deep the smallest value of a schema is; used to end recursion. */
	height(schema, seen = []) {
		if (schema.$ref) {
			const name = schema.$ref.split('/').pop();
			return seen.includes(name) ? 99
				: 1 + this.height(this.api.components.schemas[name], [...seen, name]);
		}
		if (schema.anyOf)
			return Math.min(...schema.anyOf.map((s) => this.height(s, seen)));
		const needed = (schema.required ?? []).map((k) => this.height(schema.properties[k], seen));
		return 1 + Math.max(0, ...needed);
	}

	column(name) {
		const { columns } = this.world;
		const numeric = columns.filter((c) => c.kind === 'number');
		const list = numeric_names.has(name) && numeric.length && this.is(0.95) ? numeric : columns;
		return list.length ? this.pick(list) : { column: 'run_id', kind: 'text', values: [] };
	}

	text(name) {
		const { world } = this;
		if (name === 'column' && this.is(0.1))
			return '*';
		if (column_names.has(name))
			return this.column(name).column;
		if (name === 'config')
			return this.is(0.4) ? quick_config : this.pick(configs);
		if (name === 'token')
			return this.is(0.8) ? world.token : this.pick(['x', 'none']);
		if (name === 'cursor' && world.cursors.length)
			return this.pick(world.cursors);
		if (name === 'at' || name === 'commit')
			return world.commits.length ? this.pick(world.commits) : 'c1';
		if (name === 'min' || name === 'max')
			return this.pick(['inf', '-inf', '2026-11-22T08:00:00Z']);
		return this.pick(['a', 'nightly', 'slower since Tuesday', 'M\u00fcnchen', 'x y', '8',
			`text ${this.below(1000)}`]);
	}

	number(name) {
		const column = this.column('metric');
		if (name === 'level')
			return this.pick([0.9, 0.95, 0.99, 0.5, 0.001]);
		if (name === 'rate')
			return this.random() * 100;
		return this.pick([0, 1, 0.05, this.random() * 100, column.min ?? 1, column.max ?? 2]);
	}

	integer(name) {
		if ((name === 'ids' || name === 'id') && this.world.runs.length)
			return this.pick(this.world.runs);
		return this.is(0.7) ? this.below(60) : this.below(2000);
	}

	any(depth) {
		switch (this.below(depth > 3 ? 4 : 6)) {
		case 0: return null;
		case 1: return this.number('');
		case 2: return this.text('');
		case 3: return this.is(0.5);
		case 4: return Array.from({ length: this.below(4) }, () => this.any(depth + 1));
		default: return Object.fromEntries(Array.from({ length: this.below(4) },
			() => [this.text('key'), this.any(depth + 1)]));
		}
	}

	/** A list of conditions that hold for some runs: values and ranges that columns really have. */
	condition() {
		const column = this.column('column');
		if (column.values?.length && this.is(0.6))
			return { column: column.column, in: [this.pick(column.values).value] };
		if (column.kind === 'number' && this.is(0.6))
			return { column: column.column, range: { min: column.min ?? 0 } };
		return { column: column.column, missing: this.is(0.3) };
	}

	list(schema, name, depth) {
		const length = name === 'slo' || name === 'groups' ? 1 + this.below(3) : this.below(4);
		return Array.from({ length }, () => this.make(schema.items ?? {}, name, depth + 1));
	}

	object(schema, depth) {
		const out = {};
		for (const [key, member] of Object.entries(schema.properties ?? {}))
			if ((schema.required ?? []).includes(key) || this.is(depth > 2 ? 0.2 : 0.4))
				out[key] = this.make(member, key, depth + 1);
		if (schema.additionalProperties && schema.additionalProperties !== true)
			out[this.text('key')] = this.make(schema.additionalProperties, '', depth + 1);
		// A cursor belongs to its question.
		if (out.cursor && this.is(0.8))
			delete out.cursor;
		return out;
	}

	/** A value that the schema allows; name: of the member or parameter it is for. */
	make(schema, name = '', depth = 0) {
		if (schema.$ref === '#/components/schemas/Filter' && depth < 3 && this.is(0.5))
			return this.condition();
		if (schema.$ref)
			return this.make(this.api.components.schemas[schema.$ref.split('/').pop()], name,
				depth);
		if ('const' in schema)
			return schema.const;
		if (schema.enum)
			return this.pick(schema.enum);
		if (schema.anyOf) {
			const heights = schema.anyOf.map((s) => this.height(s)), least = Math.min(...heights);
			return this.make(this.pick(depth < 6 ? schema.anyOf
				: schema.anyOf.filter((s, i) => heights[i] === least)), name, depth);
		}
		switch (Array.isArray(schema.type) ? this.pick(schema.type) : schema.type) {
		case 'string': return this.text(name);
		case 'number': return this.number(name);
		case 'integer': return this.integer(name);
		case 'boolean': return this.is(0.5);
		case 'null': return null;
		case 'array': return this.list(schema, name, depth);
		case 'object': return this.object(schema, depth);
		default: return this.any(depth);
		}
	}

	// ---- requests ----

	/** As the address has it: a filter is JSON, columns are a list with commas. */
	parameter(p) {
		if (p.name === 'filter')
			return json(this.make({ $ref: '#/components/schemas/Filter' }));
		if (p.name === 'sort')
			return `${this.is(0.5) ? '-' : ''}${this.column('sort').column}`;
		if (p.name === 'columns' || p.name === 'statistics') {
			const names = [1, 2, 3].map(() => this.column(p.name).column);
			return this.is(0.3) ? JSON.stringify(names)
				: names.filter((n) => !n.includes(',')).join(',');
		}
		const value = this.make(p.schema, p.name);
		return typeof value === 'string' ? value : json(value);
	}

	path(op) {
		const [, pool] = pool_of_path.find(([pattern]) => pattern.test(op.form)) ?? [];
		const list = this.world[pool] ?? [];
		return op.form.replace(/\{[^}]*\}/g, () => encodeURIComponent(list.length && this.is(0.95)
			? this.pick(list) : this.below(30)));
	}

	form(op) {
		const edge = `edge-${this.below(1e9)}`;
		const field = op.form.endsWith('/traces') ? 'trace' : 'file';
		const count = op.form.endsWith('/batch') || field === 'trace' ? 1 + this.below(3) : 1;
		const fields = Array.from({ length: count }, () => field);
		if (op.form.endsWith('/upload/json') && this.is(0.2))
			fields.push('trace');
		const parts = fields.map((f) => Buffer.concat([Buffer.from(`--${edge}\r\n`
			+ `Content-Disposition: form-data; name="${f}"; filename="f${this.below(9)}.json"\r\n`
			+ 'Content-Type: application/octet-stream\r\n\r\n'),
		f === 'trace' ? Buffer.from(`trace ${this.below(20)}`) : this.document(),
			Buffer.from('\r\n')]));
		return { type: `multipart/form-data; boundary=${edge}`,
			body: Buffer.concat([...parts, Buffer.from(`--${edge}--\r\n`)]) };
	}

	document() {
		const bytes = this.pick(this.world.documents);
		return this.is(0.5) ? bytes : this.change_bytes(bytes);
	}

	/** { op, method, path, query, headers, body, value }: nothing in it is wrong. */
	valid(op) {
		const r = { op, method: op.method, path: this.path(op), query: [], headers: [], body: null };
		const content = op.operation.requestBody?.content;
		for (const p of op.operation.parameters.filter((q) => q.in === 'query'))
			if (this.is(0.4))
				r.query.push([p.name, this.parameter(p)]);
		if (content?.['multipart/form-data'] && (!content['application/json'] || this.is(0.6))) {
			const form = this.form(op);
			r.body = form.body;
			r.headers.push(['Content-Type', form.type]);
		} else if (op.form.startsWith('/api/upload/')) {
			r.body = op.method === 'POST' ? this.document() : null;
			r.headers.push(['Content-Type', 'application/json']);
		} else if (content) {
			r.value = this.make(content['application/json'].schema);
			r.headers.push(['Content-Type', 'application/json']);
		}
		if (this.is(0.1))
			r.headers.push(['Accept-Encoding', 'identity']);
		return r;
	}

	/** What schemas do not say, so that most valid requests get an answer. */
	sensible(r) {
		const { value } = r, { runs } = this.world;
		if (this.is(0.2) || !value || typeof value !== 'object')
			return r;
		if (r.op.form.endsWith('/compare') && runs.length) {
			const side = () => ({ ids: [1, 2,
				3].map(() => this.pick(runs.filter(Number.isInteger))) });
			delete value.ids;
			value.groups = [side(), side()];
			value.baseline = this.below(2);
			value.level = 0.95;
		}
		if (r.op.form.endsWith('/regression')) {
			const way = this.pick(['filter', 'ids', 'commit', 'last']);
			delete value.metrics;
			value.metric = this.column('metric').column;
			value.baseline = { [way]: { filter: this.condition(), ids: runs.slice(0,
				3).filter(Number.isInteger),
				commit: this.text('commit'), last: 3 }[way] };
		}
		if (value.level !== undefined)
			value.level = 0.95;
		if (r.op.form.endsWith('/presets'))
			Object.assign(value, { name: `preset ${this.below(1e9)}`, body: this.any(0) });
		return r;
	}

	// ---- mutations ----

	wrong_value() {
		switch (this.below(8)) {
		case 0: return this.pick([null, true, false, [], {}, [[]], { a: 1 }]);
		case 1: return this.pick(edges);
		case 2: return new Raw(this.pick(odd_numbers));
		case 3: return this.pick(odd_texts);
		case 4: return new Raw(this.pick(odd_raw));
		case 5: return deep('[', ']', this.pick([10, 63, 64, 65, 1000, 50000]));
		case 6: return deep('{"and":[', ']}', this.pick([2, 15, 16, 17, 31, 32, 33, 500]), '');
		default: return Array.from({ length: this.pick([2, 9, 13, 65, 257, 2001, 10001]) },
			() => this.column('column').column);
		}
	}

	/** A copy with one place changed: another value, one less, one more, or a list that is repeated. */
	change_value(value) {
		const is_inside = value && typeof value === 'object' && !(value instanceof Raw)
			&& this.is(0.75);
		if (Array.isArray(value) && is_inside && value.length) {
			if (this.is(0.2))
				return Array.from({ length: this.pick([2, 9, 13, 33, 257, 2001]) },
					() => this.pick(value));
			const at = this.below(value.length);
			return value.map((v, i) => i === at ? this.change_value(v) : v);
		}
		if (is_inside && Object.keys(value).length) {
			const keys = Object.keys(value), key = this.pick(keys), out = { ...value };
			if (this.is(0.1))
				delete out[key];
			else if (this.is(0.1))
				out[this.pick(odd_texts)] = this.wrong_value();
			else if (this.is(0.1))
				out[`${key}${this.pick(['s', '_', ' ', 'X'])}`] = value[key];
			else
				out[key] = this.change_value(value[key]);
			return out;
		}
		if (typeof value === 'number' && this.is(0.5))
			return this.pick([value + 1, value - 1, -value, value * 1e6, value / 7]);
		return this.wrong_value();
	}

	change_query(r) {
		const known = r.op.operation.parameters.filter((p) => p.in === 'query').map((p) => p.name);
		const name = known.length && this.is(0.8) ? this.pick(known) : this.pick(['page', 'Limit',
			'a[]', '']);
		const value = this.pick([...odd_texts, ...odd_numbers, ...edges.map(String), ...odd_raw]);
		const own = r.query.find(([k]) => k === name);
		r.query.push([name, value]);
		if (own && this.is(0.5))
			r.query.push([name, own[1]]);
		if (this.is(0.2))
			r.raw_query = this.pick(['&&&=&', `${name}=%`, `${name}=%zz`, `${name}=%ff%fe`,
				`${name}=%00`,
				`${name}`, `=${name}`, `${name}=%c0%af`, `${name}=+`,
					`${name}=a&`.repeat(200),
				`${name}=${'%41'.repeat(2000)}`, '?', `${name}=1#x`]);
	}

	change_path(r) {
		const ids = ['0', '-1', '9223372036854775807', '9223372036854775808', '%00', '%ff', '..', '.',
			'%2e%2e', '%2f',
			'%252e', '*', 'a'.repeat(5000), "'", '%27%20OR%201=1--', '1%00', '1/', '1;x', '1e1',
				'%D9%A1', '+1', '01'];
		const at = r.path.split('/');
		r.op = null; // whatever it is now
		switch (this.below(5)) {
		case 0: at[at.length - 1] = this.pick(ids); break;
		case 1: at.splice(this.below(at.length), 0, this.pick([...ids, ''])); break;
		case 2: at[this.below(at.length)] = this.pick(ids); break;
		case 3: r.path = r.path.replace(/[a-z]/g, (c) => this.is(0.3)
			? `%${c.charCodeAt(0).toString(16)}` : c); return;
		default: r.path = this.pick(['/', '', '/api', '/api/', '//api/health', '/api/health/',
			'/API/HEALTH',
			'/assets/../../etc/passwd', '/runs/1', '/favicon.ico', '/metrics/',
				'http://x/api/health', '*']); return;
		}
		r.path = at.join('/');
	}

	change_method(r) {
		r.method = this.pick(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'BREW',
			'get', 'PROPFIND']);
		r.op = null;
	}

	change_headers(r) {
		r.headers.push(this.pick([['Content-Type', 'text/plain'], ['Content-Type',
			'multipart/form-data'],
			['Content-Type', 'multipart/form-data; boundary="'], ['Content-Type',
				'application/json; charset=utf-16'],
			['Content-Type', 'application/x-www-form-urlencoded'], ['Content-Encoding', 'gzip'],
			['Content-Encoding', 'x, y'], ['Origin', 'null'], ['Origin', 'http://evil.example'],
				['Origin', ''],
			['Host', 'evil.example'], ['Host', ''], ['Accept-Encoding', 'gzip;q=0, *;q=nan'],
				['Accept-Encoding', 'gzip'],
			['Range', 'bytes=0-'], ['Range', 'bytes=-0'], ['Range', 'bytes=9-1'], ['Range',
				'bytes=99999999999999999999-'],
			['Range', 'bytes=0-0,2-3'], ['If-Range', 'x'], ['If-None-Match', '*'],
				['If-None-Match', 'W/"'.repeat(300)],
			['Expect', '100-continue'], ['Expect', 'nothing'], ['Authorization',
				`Bearer ${'x'.repeat(3000)}`],
			['Authorization', 'Basic eDp5'], ['Cookie', 'profllm=x; a="b;'], ['X-Forwarded-For',
				'1.2.3.4'],
			['Connection', 'close'], ['Connection', 'Upgrade'], ['Upgrade', 'h2c'], ['X-Odd',
				'\x01\x7f\xff'],
			['X-Long', 'x'.repeat(4000)]]));
	}

	/** Bytes changed, cut, repeated, put in; of a document or of a whole request. */
	change_bytes(bytes) {
		let out = Buffer.from(bytes);
		for (let k = 1 + this.below(4); k > 0 && out.length; k--) {
			const at = this.below(out.length), n = 1 + this.below(Math.min(64, out.length - at));
			const odd = Buffer.from(this.pick([...odd_texts, ...odd_numbers, ...odd_raw, '[', '{',
				'"', '\\', ',']),
				'latin1');
			switch (this.below(7)) {
			case 0: out[at] ^= 1 << this.below(8); break;
			case 1: out[at] = this.below(256); break;
			case 2: out = out.subarray(0, at); break;
			case 3: out = Buffer.concat([out.subarray(0, at), out.subarray(at + n)]); break;
			case 4: out = Buffer.concat([out.subarray(0, at + n), out.subarray(at)]); break;
			case 5: out = Buffer.concat([out.subarray(0, at), odd, out.subarray(at)]); break;
			default: out = Buffer.concat([out.subarray(0, at), odd, out.subarray(at + n)]);
			}
		}
		return out;
	}

	/** One or two parts of a valid request are changed. */
	mutate(r) {
		for (let k = this.is(0.7) ? 1 : 2; k > 0; k--) {
			switch (this.below(r.value === undefined ? 6 : 10)) {
			case 0: if (r.op) this.change_query(r); break;
			case 1: this.change_path(r); break;
			case 2: this.change_method(r); break;
			case 3: this.change_headers(r); break;
			case 4: if (r.body) r.body = this.change_bytes(r.body); break;
			case 5: if (r.op) this.change_query(r); break;
			default: if (r.value !== undefined) r.value = this.change_value(r.value);
			}
		}
		if (r.value !== undefined && this.is(0.1))
			r.body = this.change_bytes(Buffer.from(json(r.value)));
		r.is_mutated = true;
		return r;
	}

	/** The request's bytes; a body in chunks now and then. */
	bytes(r) {
		const query = r.raw_query ?? r.query.map(([k, v]) => `${encodeURIComponent(k)}=`
			+ encodeURIComponent(typeof v === 'string' ? v.toWellFormed() : v)).join('&');
		const body = r.body ?? (r.value === undefined ? null : Buffer.from(json(r.value)));
		const own = new Set(r.headers.map(([k]) => k));
		const head = [`${r.method} ${r.path}${query ? `?${query}` : ''} HTTP/1.1`];
		if (!own.has('Host'))
			head.push('Host: localhost');
		if (this.world.token && !own.has('Authorization'))
			head.push(`Authorization: Bearer ${this.world.token}`);
		for (const [k, v] of r.headers)
			head.push(`${k}: ${v}`);
		if (!body)
			return Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1');
		if (!this.is(0.1)) {
			head.push(`Content-Length: ${body.length}`);
			return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
		}
		head.push('Transfer-Encoding: chunked');
		const parts = [Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1')];
		for (let at = 0; at < body.length;) {
			const n = Math.min(body.length - at, 1 + this.below(65536));
			parts.push(Buffer.from(`${n.toString(16)}\r\n`), body.subarray(at, at + n),
				Buffer.from('\r\n'));
			at += n;
		}
		return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
	}
}
