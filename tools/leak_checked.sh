#!/usr/bin/env bash
# leak_checked.sh COMMAND...: the tests of a program under the leak checker -> their exit status. Rarely
# g++ 12's checker cannot stop the threads of a program whose tests have all passed, says that it "has
# encountered a fatal error" and has looked for no leak: then, and only then, all runs again.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
if [ "$status" -ne 0 ] && grep -q 'LeakSanitizer has encountered a fatal error' "$log" &&
  grep -q '^\[  PASSED  \]' "$log" && ! grep -q '^\[  FAILED  \]' "$log"; then
  echo "leak_checked: the leak checker broke down; once more"
  "$@"
  status=$?
fi
exit "$status"
