#!/usr/bin/env bash
# Installs the C++ library of a build folder and builds and runs the example project against it, from
# a folder outside the tree, where every installed header compiles alone too:
# tools/check_consumer.sh build/release
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/installed" --component library
cp -r examples/consumer "$work/source"
cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed"
cmake --build "$work/build"
"$work/build/consumer"
(cd "$work/installed/include" && find cuop -name '*.h') |
  xargs -P "$(nproc)" -I HEADER sh -c '
    echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -fsyntax-only -I "$2/include" -x c++ - ||
      { echo "$1 does not compile alone" >&2; exit 1; }' sh HEADER "$work/installed"
