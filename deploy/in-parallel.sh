#!/bin/sh
# Runs npm scripts at the same time. Fails if one of them fails, after all have ended: sh deploy/in-parallel.sh check build
jobs=
for script; do
  npm run --silent "$script" &
  jobs="$jobs $!"
done
status=0
for job in $jobs; do
  wait "$job" || status=1
done
exit "$status"
