#!/bin/sh
# Installs what the deployment test deploys to, an emulator of AWS, unless it is there already.
#
# It goes into a virtual environment of its own, .emulator in the project's folder. Where Python
# cannot make one, the missing packages are added with apt-get when this runs as root, and only
# named when it does not. Apart from those packages it never writes outside .emulator.
set -eu
cd "$(dirname "$0")/../.."

# A copy of the list is left behind by a finished install, so that a broken-off one and a changed
# version are both seen.
wanted=test/deploy/requirements.txt
venv=.emulator/venv
installed=.emulator/installed-from
if cmp -s "$wanted" "$installed" && [ -x "$venv/bin/python" ]; then
  exit 0
fi

rm -rf .emulator
# A Python without its packages makes half an environment, and only then says so.
if ! python3 -m venv "$venv" >/dev/null 2>&1; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "The emulator cannot be installed without: python3 python3-venv" >&2
    echo "On Debian: apt-get install python3 python3-venv" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    python3 python3-venv
  rm -rf .emulator
  python3 -m venv "$venv"
fi

"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$wanted"
"$venv/bin/python" -m pip check >/dev/null
cp "$wanted" "$installed"
