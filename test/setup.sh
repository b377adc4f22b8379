#!/usr/bin/env bash
# Installs what the tests need and this machine lacks. Where it may not
# install, it says in one line what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { # command package
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
	else
		echo "the tests need $1: install it, on Debian with: apt-get install $2" >&2
		exit 1
	fi
}

need redis-server redis-server
need node nodejs
need npm npm
need groff groff-base
[ -d test/readers/node_modules ] && [ test/readers/node_modules -nt test/readers/package-lock.json ] ||
	(cd test/readers && npm ci --no-audit --no-fund --loglevel=error && touch node_modules)
