#!/bin/sh
# Plays the broker: registers two topics, and appends to the open segment of each
# of their partitions and to a plain stream, five times a second until it is
# stopped. The first segments are made, and full ones sealed, by korvet-offload.
set -eu
here=$(dirname "$0")

run() { redis-cli -h "${REDIS_HOST:-localhost}" -p "${REDIS_PORT:-6379}" "$@" >/dev/null; }

topic() { # name partitions
	run HSET "korvet:topic:$1" remote.storage.enable true partitions "$2" \
		segment.ms 15000 local.retention.ms 60000 retention.ms 240000
	run SADD korvet:topics "$1"
}

topic orders 3
topic payments 1
while :; do
	for partition in orders:0 orders:1 orders:2 payments:0; do
		run --eval "$here/append.lua" "korvet:storage:manifest:$partition" "korvet:storage:local:$partition" , 60
	done
	run XADD clicks '*' user 4711 page /home
	sleep 0.2
done
