#!/usr/bin/env bash
# Creates or updates the virtual environment with exactly the locked packages, and the project itself on top.
# Called by the Makefile when .venv is missing or older than requirements.lock or pyproject.toml.
# Needs only a Python with venv; nothing outside the folder is changed.
#
#     tools/venv.sh <python> <folder>
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
folder=$2

if ! command -v "$python" >/dev/null; then
    echo "error: no \`$python\` found. SMILE needs Python 3.11 or newer with venv." >&2
    echo "       Debian, Ubuntu: apt-get install python3 python3-venv" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "error: \`$python\` is $("$python" --version 2>&1); SMILE needs Python 3.11 or newer." >&2
    echo "       Debian 12, Ubuntu 24.04 and newer have it as python3. Elsewhere install one beside the old," >&2
    echo "       e.g. apt-get install python3.11 python3.11-venv, and name it: make PYTHON=python3.11 test" >&2
    exit 1
fi
# Debian splits ensurepip off: `venv` can be imported but would then fail half-way.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "error: \`$python\` cannot create virtual environments: its venv module is not installed." >&2
    echo "       Debian, Ubuntu: apt-get install python3-venv   (or python$version-venv)" >&2
    exit 1
fi

# A folder left by an interrupted set-up, or whose Python was since removed, is made anew.
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "Creating $folder with $("$python" --version)"
    "$python" -m venv --clear "$folder"
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1
echo "Installing the locked packages into $folder"
"$folder/bin/python" -m pip install --quiet --require-hashes --requirement requirements.lock
# The build backend comes from the lock too, hence no isolated build with whatever is newest today. Errors only: newer
# versions of pip show setuptools' general advice about editable installs, which says nothing about this one.
"$folder/bin/python" -m pip install -qq --no-deps --no-build-isolation --editable .
