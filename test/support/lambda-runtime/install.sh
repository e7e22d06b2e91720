#!/bin/sh
# Installs the real Node runtime of AWS Lambda for the tests, unless it is there already.
#
# Its native part is compiled on this machine, which takes about a minute. Missing tools
# are added with apt-get when this runs as root, and only named when it does not. Apart
# from those packages it never writes outside this folder.
set -eu
cd "$(dirname "$0")"

# A copy of the lock file is left behind by a finished install, so that a broken-off one
# and a changed version are both seen.
installed=node_modules/.installed-from
if cmp -s package-lock.json "$installed" &&
  [ -f node_modules/aws-lambda-ric/rapid-client.node ]; then
  exit 0
fi

missing=
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need cmake cmake
need g++ g++
need make make
need autoconf autoconf
need automake automake
need libtoolize libtool
need python3 python3
need xz xz-utils

if [ -n "$missing" ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "The Lambda runtime cannot be compiled without:$missing" >&2
    echo "On Debian: apt-get install$missing" >&2
    exit 1
  fi
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of packages
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

npm ci
cp package-lock.json "$installed"
