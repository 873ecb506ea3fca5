#!/usr/bin/env bash
# Runs the gate as CI does: `.ci/run` in a fresh clone of this commit, on servers of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
shared=$(cd .. && pwd)/shared
export TAKEMARK_CORPUS="${TAKEMARK_CORPUS:-$shared/corpus}" TAKEMARK_VECTORS="${TAKEMARK_VECTORS:-$shared/vectors}"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
git clone --quiet . "$directory/takemark"
TAKEMARK_SERVICES_DIR="$directory/services" "$directory/takemark/.ci/run"
