#!/usr/bin/env bash
# Installs the ledger's peers from the Python package index, each in an environment of its own outside the repository.
#
#   install.sh FOLDER
set -euo pipefail

# environment FOLDER PACKAGE…: made again if the list of packages has changed.
environment() {
  local folder="$1"
  shift
  [ "$(cat "$folder/packages" 2>/dev/null)" != "$*" ] || return 0
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
  echo "$*" >"$folder/packages"
}

mkdir -p "$1"
environment "$1/dlt" 'dlt[postgres]==1.31.0' 'psycopg[binary]==3.2.*' 'orjson==3.*' 'pyarrow==21.*' 'requests==2.*'
environment "$1/tap" 'tap-rest-api-msdk==1.4.2'
environment "$1/target" 'meltanolabs-target-postgres==0.8.1'
