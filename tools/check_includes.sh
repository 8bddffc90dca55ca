#!/usr/bin/env bash
# Each source of the library includes what it needs: builds compile up to 16 together, where one would
# be served by another's includes.
#   tools/check_includes.sh build/ci
# The standard library's headers are read once for all, so that it takes minutes less: of those only what
# headers lack that are compiled alone (CUOP_CHECK_HEADERS, tools/check_consumer.sh) is found, there.
set -euo pipefail
cd "$(dirname "$0")/.."
generated=$(realpath "$1")/generated
[ -d "$generated" ] || { echo "check_includes: $1 is no build folder: it has no generated/" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What few include is left out: it would have to be read with the others each time.
grep -rhoE '^#include <[a-z_0-9]+>' src/cuop | sort | uniq -c | awk '$1 >= 8 {print $2, $3}' > "$folder/std.h"
options=(-std=c++20 -w -Isrc -I"$generated" '-DCUOP_VERSION=""')
c++ "${options[@]}" -x c++-header "$folder/std.h" -o "$folder/std.h.gch"
# Modules have libraries of others, hot loops are compiled alone in any case.
find src/cuop -name '*.cpp' | grep -vE '_(module|isa)\.cpp$' > "$folder/sources"
xargs -P "$(nproc)" -I{} c++ "${options[@]}" -include "$folder/std.h" -fsyntax-only {} < "$folder/sources"
echo "check_includes: $(wc -l < "$folder/sources") sources compile alone"
