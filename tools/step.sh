#!/usr/bin/env bash
# Runs a command with its output in a log and one line on the screen:
#   tools/step.sh NAME LOG COMMAND...
# On a terminal the line shows the time and what the command said last; a failure shows the log's end.
set -uo pipefail
name=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")"
SECONDS=0

show_progress() {
  while sleep 1; do
    printf '\r\033[K%-22s %4d s  %s' "$name" "$SECONDS" \
      "$(tail -n 1 "$log" | tr -d '\r\033' | cut -c "1-$((${COLUMNS:-80} - 32))")"
  done
}

if [ -t 1 ]; then
  : >"$log"
  show_progress &
  progress=$!
fi
"$@" >"$log" 2>&1 </dev/null
status=$?
if [ -t 1 ]; then
  kill "$progress"
  wait "$progress" 2>/dev/null
  printf '\r\033[K'
fi
if [ $status -eq 0 ]; then
  printf '%-22s %4d s  ok\n' "$name" "$SECONDS"
else
  printf '%-22s %4d s  FAILED (exit code %d), end of %s:\n' "$name" "$SECONDS" $status "$log"
  tail -n "${STEP_TAIL:-40}" "$log"
fi
exit $status
