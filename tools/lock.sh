#!/usr/bin/env bash
# Writes requirements.lock from pyproject.toml: one set of versions for every supported Python and machine, with digests.
# For maintainers; set-up never calls it. Arguments go to the resolver, e.g. --upgrade or --upgrade-package lark:
# without them, versions that still fit are kept.
set -euo pipefail
cd "$(dirname "$0")/.."

resolver=build/lock-venv
if [ ! -x "$resolver/bin/uv" ]; then
    "${PYTHON:-python3}" -m venv "$resolver"
    "$resolver/bin/python" -m pip install --quiet uv
fi

pinned=build/requirements.lock
cp requirements.lock "$pinned" 2>/dev/null || true
# No index address: where packages come from is the business of the machine that installs them.
"$resolver/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --extra dev --output-file "$pinned" "$@" pyproject.toml >/dev/null
{
    echo "# Every package a checkout runs with, for all supported Pythons and machines, with the digests of its files."
    echo "# Written by \`make lock\` from pyproject.toml; do not edit."
    cat "$pinned"
} >requirements.lock
