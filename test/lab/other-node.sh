#!/usr/bin/env bash
# test/lab/other-node.sh VERSION [name...]: runs the gate's tests of this build on another release of Node, or the
# named entries of it.
# Puts that Node and a copy of the checkout into a directory below the system's temporary one and compiles the packages
# against that Node's headers. The checkout stays as it is. A directory that has both already is used again.
# Needs npm, a C++ compiler and make; the variables of the test servers are passed on. Linux, x64 or arm64.
set -euo pipefail
version=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
directory="${TMPDIR:-/tmp}/takemark-other-node"
node="$directory/node-$version" tree="$directory/tree-$version"
mkdir -p "$tree"

if ! "$node/bin/node" --version 2>/dev/null | grep -qx "v$version"; then
  case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) echo "no Node package for $(uname -m)" >&2; exit 2 ;; esac
  # The npm package has the headers too, which compiling needs.
  archive=$(cd "$directory" && npm pack --silent "node-linux-$arch@$version")
  rm -rf "$node" && mkdir "$node"
  tar -xzf "$directory/$archive" -C "$node" --strip-components=1
  rm "$directory/$archive"
fi
export PATH="$node/bin:$PATH" npm_config_nodedir="$node"

find "$tree" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
tar -C "$source" -cf - --exclude=./node_modules --exclude=./.git --exclude=./.tap --exclude=./.lab --exclude=./takemark-data . \
  | tar -C "$tree" -xf -
cd "$tree"
installed=node_modules/.installed-for
wanted="$version $(sha256sum package-lock.json | cut -d' ' -f1)"
if [ "$(cat "$installed" 2>/dev/null)" != "$wanted" ]; then
  # Only the Kafka client's script runs, as package.json allows with newer releases of npm.
  npm ci --ignore-scripts
  PATH="/usr/lib/ccache:$PATH" CCACHE_NOHASHDIR=1 npm rebuild node-rdkafka --foreground-scripts
  echo "$wanted" >"$installed"
fi
echo "node $(node --version), OpenSSL $(node -p process.versions.openssl)"
CI=true node test/run.mjs "${@:2}"
