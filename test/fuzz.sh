#!/usr/bin/env bash
# Runs every fuzz target for the given time.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?how long, such as 10s}
grep -rlE '^func Fuzz' --include='*_test.go' . | grep -v '^./test/goreaders' | while read -r file; do
	for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file"); do
		echo "$(dirname "$file") $target"
		go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done
