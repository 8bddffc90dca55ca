#!/bin/sh
# Compiles through ccache, by default the one on PATH or $CUOP_CCACHE. A precompiled header that is there
# already goes first: ccache would take it for the headers that it was made from, and hand out what others
# made with it beside.
for argument; do
  case $argument in
    *.gch) rm -f "$argument" ;;
  esac
done
exec "${CUOP_CCACHE:-ccache}" "$@"
