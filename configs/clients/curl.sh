#!/bin/sh
# One streamed request in each dialect. BASE, KEY and MODEL may be set from outside.
set -eu
BASE=${BASE:-http://127.0.0.1:4000}
KEY=${KEY:-sk-demo}
MODEL=${MODEL:-demo}

post() { # path body
	echo "== POST $1"
	curl -sS -N --fail-with-body "$BASE$1" \
		-H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
		-H 'anthropic-version: 2023-06-01' -d "$2"
	echo
}

post /v1/chat/completions '{"model":"'"$MODEL"'","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Say hello."}]}'
post /v1/messages '{"model":"'"$MODEL"'","stream":true,"max_tokens":256,"messages":[{"role":"user","content":"Say hello."}]}'
post /v1/responses '{"model":"'"$MODEL"'","stream":true,"store":false,"input":"Say hello."}'
