#!/usr/bin/env bash
# Installs the C++ library of a build folder and builds and runs the example project against it, from
# a folder outside the tree: tools/check_consumer.sh build/release
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/installed" --component library
cp -r examples/consumer "$work/source"
cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed"
cmake --build "$work/build"
"$work/build/consumer"
