#!/usr/bin/env bash
# Installs the C++ library of a build folder, compares the installed headers with the lists, and builds
# and runs the example project against them, from a folder outside the tree, where a program that
# includes one public header alone compiles for each: tools/check_consumer.sh build/release
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/installed" --component library
python3 tools/check_layers.py --installed "$work/installed/include"
cp -r examples/consumer "$work/source"
cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed"
cmake --build "$work/build"
"$work/build/consumer"
# cuop/cuop.h includes all of them, and so their parts.
{ cat src/public_headers.txt && echo cuop/cuop.h; } |
  xargs -P "$(nproc)" -I HEADER sh -c '
    printf "#include <%s>\nint main() {}\n" "$1" |
      "${CXX:-c++}" -std=c++20 -fsyntax-only -I "$2/include" -x c++ - ||
      { echo "$1 does not compile alone" >&2; exit 1; }' sh HEADER "$work/installed"
