// SPDX-License-Identifier: Apache-2.0
//
// texts.mjs - texts on which tokenizers disagree: a fixed list, and random
// documents put together from the same kinds of trap.

const repeat = (text, n) => text.repeat(n);

export const TRICKY = {
	empty: '',
	contractions: "I'm you're we'LL they'd it'S he'ſ don'T 'tis 'S'll'd y'all've O'Re",
	'space runs': 'a  b   c    d     e\n  f\n\n\n g \t h\t\t i   \n   j   ',
	'odd blanks': 'a\u00a0b\u0085c\u180ed\u3000e\u2003f\u2028g\u2029h\u1680i\u202fj\u205fk\u200bl',
	digits: '0 12 123 1234 12345 ١٢٣٤٥ १२३४५ ๑๒๓๔ 𝟙𝟚𝟛𝟜 Ⅷ ½ ² 1,234.56 0x1F 1e-9',
	'emoji sequences': '👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵🇺🇸 👍🏽 ❤️ 🫨🪿 #️⃣ 1️⃣',
	'han and kana': '今天天气很好。東京都に住んでいます、カタカナ・ひらがな！している',
	'hangul jamo': '안녕하세요 \u1112\u1161\u11ab\u1100\u1173\u11af \u3131\u314f',
	'decomposed': 'e\u0301 a\u0308 n\u0303 \u1e9b\u0323 q\u0307\u0323 A\u030a \u212b \u2126 \u0958',
	'compatibility': 'ﬁ ﬀ ① Ａｂｃ ㎏ ℌ ½ ™ ﾊﾝｶｸ',
	'right to left': 'مرحبا بالعالم שלום עולם نص مع أرقام ١٢٣ וניקוד שָׁלוֹם',
	'indic and thai': 'नमस्ते दुनिया ক্ষ ฉันรักภาษาไทย ກຂຄ ကခဂ',
	'camel case': 'parseHTTPResponse XMLHttpRequest iPhone McDonald ǅungla ALLCAPS aB Ab ABc',
	code: 'int main(void)\n{\n\treturn printf("%d\\n", x->y[3] += 0xff) /* // */;\n}\n',
	python: 'def f(x: int = 3) -> str:\n    return f"{x!r:>10}"  # comment\n\n\n',
	urls: 'https://example.org/a_b/c?d=e&f=%20g#h mailto:x.y+z@example.co.uk C:\\Temp\\x.txt',
	'zero width': 'a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg',
	controls: 'a\u0000b\u0001c\u0007d\u001be\u007ff\u0080g\u009fh',
	unassigned: '\u0378\u{323b0}\u{e0fff}\u{10fffd}\ue000\u{1f8ff}',
	'new in 15 and 16': '\u{105c0}\u{10d4a}\u{10d6f}\u{134d3}\u{16d40}\u{1ccf0}\u{1fa89}\ua7cb\u1c89\u1c8a',
	'marks after Unicode 9': 'a\u{1e135}\u0323 e\u0345\u{1e130}\u0334 o\u0323\u{110ff}\u08d3\u0301 \u{11935}\u{11930}',
	'special tokens': '<|endoftext|>a<|im_start|>user\n b<|im_end|> <|eot_id|><|begin_of_text|><think>x</think><|end|',
	'broken specials': '<|endoftext<|endoftext|>|> <| im_start|> <|<|im_end|>|',
	'long repeat': repeat('a', 300) + repeat(' ', 300) + repeat('=', 300) + repeat('\n', 300),
	'long word': repeat('abcdefghij', 30) + repeat('ß', 100) + repeat('한', 100),
	'html': '<div class="a b"><p>x &amp; y</p><br/></div><!-- c -->',
	vietnamese: 'Tôi yêu tiếng Việt. Người Hà Nội, phở bò, đường phố, çalışıyor, žluťoučký kůň',
	'lone surrogate': 'a\ufffdb\ufffd\ufffdc',
	'newline mixes': 'a\r\nb\rc\n\rd\r\r\n\n e\u000bf\u000cg \r\n\r\n  h\n \n\t\n',
};

/* A small seeded generator, so that a failure can be had again. */
export function generator(seed) {
	let s = seed >>> 0;
	const next = () => {
		s = (s + 0x6d2b79f5) >>> 0;
		let t = Math.imul(s ^ (s >>> 15), s | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return (t ^ (t >>> 14)) >>> 0;
	};
	return { below: n => next() % n, pick: list => list[next() % list.length] };
}

const RANGES = [[0x20, 0x7e], [0x20, 0x7e], [0x61, 0x7a], [0x61, 0x7a], [0x41, 0x5a], [0x30, 0x39],
	[0, 0x1f], [0xa0, 0xff], [0x100, 0x24f], [0x2b0, 0x36f], [0x370, 0x3ff], [0x400, 0x52f],
	[0x590, 0x6ff], [0x900, 0x97f], [0xe00, 0xe7f], [0x1100, 0x11ff], [0x1e00, 0x1fff],
	[0x2000, 0x206f], [0x2070, 0x218f], [0x2190, 0x2bff], [0x3000, 0x30ff], [0x3100, 0x33ff],
	[0x4e00, 0x9fff], [0xa720, 0xa7ff], [0xac00, 0xd7a3], [0xe000, 0xe0ff], [0xf900, 0xfaff],
	[0xfb00, 0xfb4f], [0xfe00, 0xfe6f], [0xff00, 0xffef], [0x10000, 0x107ff], [0x10900, 0x10fff],
	[0x11000, 0x11fff], [0x13000, 0x143ff], [0x16000, 0x16fff], [0x1cc00, 0x1ceff],
	[0x1d400, 0x1d7ff], [0x1e000, 0x1e9ff], [0x1f000, 0x1faff], [0x20000, 0x323ff],
	[0xe0000, 0xe01ff], [0x10fff0, 0x10ffff], [0x80, 0x10ffff]];
const PIECES = ["'s", "'S", "'ll", "'LL", "'re", "'ve", "'d", "'m", "'t", "'ſ", 'ſ', ' ', '  ', '   ',
	'\n', '\r\n', '\n\n', '\t', ' \n', '\n ', '\u00a0', '\u3000', '\u0085', '\u180e', '\u200d',
	'\ufe0f', '\u0301', '\u0323', '\u0308', '\u0345', '/', '//', '...', '1', '12', '123', '1234', '٣',
	'५', '½', '²', 'the', ' the', 'The', ' of', 'ing', ' code', 'している', '的', '한국', '👍🏽', 'é',
	'e\u0301', 'ǅ', 'ª', 'ʰ', '<|', '|>', '<', '>', '_', '-', '(', ')', '{', '}', '"', '\\', '#',
	'K', 'K', 'İ', 'ı', 'ß', 'ẞ'];

/* Surrogates, too long forms, what lies beyond the last character, cut ones. */
const BROKEN = [[0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80], [0xc0, 0x80], [0xe0, 0x80, 0x80],
	[0xf0, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80], [0xe4, 0xb8], [0xf0, 0x9f, 0x98], [0xf0, 0x9f], [0xc3],
	[0x80], [0xbf, 0xbf], [0xfe], [0xff, 0xfe], [0x20, 0xe2, 0x82, 0x20], [0x00], [0xef, 0xbb, 0xbf]];

function character(r) {
	const [first, last] = r.pick(RANGES);
	const cp = first + r.below(last - first + 1);
	return cp >= 0xd800 && cp <= 0xdfff ? '\ufffd' : String.fromCodePoint(cp);
}

/* specials: added tokens of the vocabulary under test. */
export function randomDocument(r, specials) {
	const parts = [];
	let length = 1 + r.below(60);

	while (length-- > 0) {
		const kind = r.below(20);
		if (kind < 9)
			parts.push(r.pick(PIECES));
		else if (kind < 17)
			parts.push(character(r));
		else if (kind < 18)
			parts.push(character(r).repeat(1 + r.below(40)));
		else if (kind < 19)
			parts.push(r.pick(PIECES).repeat(1 + r.below(9)));
		else if (specials.length > 0) {
			const token = r.pick(specials);
			parts.push(r.below(4) ? token : token.slice(0, r.below(token.length)));
		}
	}
	return parts.join('');
}

/* Bytes, some of which are no UTF-8. */
export function brokenDocument(r) {
	const bytes = Buffer.from(randomDocument(r, []));
	const parts = [bytes];

	for (let i = 1 + r.below(6); i > 0; i--) {
		const at = r.below(bytes.length), of = r.pick(BROKEN);
		bytes[at] = r.pick([0x80, 0xbf, 0xc0, 0xe0, 0xed, 0xf0, 0xf4, 0xff, 0x00]);
		parts.push(Buffer.from(of), bytes.subarray(0, at));
	}
	return Buffer.concat(parts);
}

/* Ideographs and syllables: thousands alike. */
const UNIFORM = [[0x3400, 0x9fff], [0xac00, 0xd7a3], [0x17000, 0x18cff], [0x20000, 0x323ff]];

/* Every code point of the assigned planes, 64 to a document. */
export function sweepDocuments() {
	const list = [];

	for (let first = 0; first < 0xe0200; first += 64) {
		const isUniform = UNIFORM.some(([from, to]) => first >= from && first + 63 <= to);
		let text = '';
		if (first >= 0x33480 && first < 0xe0000)
			continue;
		for (let cp = first; cp < first + 64; cp++) {
			const c = cp >= 0xd800 && cp <= 0xdfff ? '.' : String.fromCodePoint(cp);
			text += isUniform ? ` a${c}b${c}1${c}\u0301` :
				` a${c}b ${c}B1${c}2 !${c}?${c}${c}\n${c} e${c}\u0334\u0301 \u0345${c}'s `;
		}
		list.push({ text });
	}
	return list;
}
