# SPDX-License-Identifier: Apache-2.0
# awk -f tools/sharegpt.awk < pages: neighbouring paragraphs as ShareGPT conversations.
#
# A paragraph of 8 to 250 words asks, the one after it answers. Tables, code, headings and
# links by reference are left out.
BEGIN { RS = ""; printf "[" }
/^(#|```|\||<|\t|    )/ { next }
{
	text = $0
	gsub(/\\/, "&&", text); gsub(/"/, "\\\"", text)
	gsub(/[ \t\n]+/, " ", text); gsub(/[\001-\037]/, "", text)
	if (NF < 8 || NF > 250) next
	if (before != "") {
		printf "%s\n{\"id\": \"%d\", \"conversations\": [", n++ ? "," : "", n
		printf "{\"from\": \"human\", \"value\": \"Explain this: %s\"}, ", before
		printf "{\"from\": \"gpt\", \"value\": \"%s\"}]}", text
	}
	before = text
}
END { print "\n]" }
