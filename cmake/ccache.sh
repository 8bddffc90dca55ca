#!/bin/sh
# Compiles through ccache, by default the one on PATH or $CUOP_CCACHE. A precompiled header is made anew
# unless the very text of its headers is known: GCC knows a header with #pragma once by the bytes it was
# made from, so one from before a changed comment defines everything twice. Hence depend mode, which never
# compares preprocessed text, in a namespace that holds nothing found by it. One that is there already goes
# first: ccache would take it for its headers, and hand out what others made with it beside.
for argument; do
  case $argument in
    *.gch)
      rm -f "$argument"
      export CCACHE_DEPEND=1 CCACHE_NAMESPACE=cuop-precompiled
      ;;
  esac
done
exec "${CUOP_CCACHE:-ccache}" "$@"
