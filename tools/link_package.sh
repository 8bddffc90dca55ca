#!/usr/bin/env bash
# Makes .venv use the Python package of a build folder: tools/link_package.sh build/release/python
# Like an editable install: what the next build changes is there at once.
set -euo pipefail
cd "$(dirname "$0")/.."
package=$PWD/$1
bin=$PWD/.venv/bin
site=$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$package" >"$site/cuop-build.pth"
cat >"$bin/cuop" <<EOF
#!$bin/python
import sys

from cuop.cli.main import main

sys.exit(main())
EOF
chmod +x "$bin/cuop"
