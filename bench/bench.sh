#!/bin/sh
# bench.sh [-quick] [flags of bench]   prints what the gateway costs, as one table.
# The binaries go to $OUT, or to a folder that is removed at the end. Only loopback addresses are used.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "${OUT:-}" ]; then
  mkdir -p "$OUT"
else
  OUT=$(mktemp -d)
  trap 'rm -rf "$OUT"' EXIT
  trap 'exit 1' INT TERM
fi
cd "$top"
go build -o "$OUT/bench" ./bench/load/cmd/bench
CGO_ENABLED=0 go build -trimpath -o "$OUT/gateway" ./cmd/gateway
ulimit -n "$(ulimit -Hn)" # thousands of open streams have two connections each
"$OUT/bench" -gateway "$OUT/gateway" "$@"
