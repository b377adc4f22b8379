#!/usr/bin/env bash
# Installs what the tests of this folder need and this machine lacks, beside what
# test/setup.sh installs. Where it may not install, it says in one line what to install.
set -euo pipefail
cd "$(dirname "$0")"
bash ../test/setup.sh

if ! command -v postgres >/dev/null && ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
	else
		echo "the tests need a PostgreSQL server: install it, on Debian with: apt-get install postgresql" >&2
		exit 1
	fi
fi
reader=testdata/icebird
[ -d $reader/node_modules ] && [ $reader/node_modules -nt $reader/package-lock.json ] ||
	(cd $reader && npm ci --no-audit --no-fund --loglevel=error && touch node_modules)
