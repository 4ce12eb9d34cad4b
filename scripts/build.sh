#!/usr/bin/env bash
# Sets up and builds one preset into build/PRESET, all of it or the named targets.
#   scripts/build.sh [dev|release|gpu] [-DNAME=VALUE ...] [--target NAME ...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
case "$preset" in
  dev | release | gpu) ;;
  *)
    echo "build: no preset '$preset'; there are dev, release and gpu" >&2
    exit 2
    ;;
esac
shift || true

settings=()
while [ $# -gt 0 ] && [ "$1" != --target ]; do
  settings+=("$1")
  shift
done

if [ "$preset" = gpu ]; then scripts/setup.sh --gpu; else scripts/setup.sh; fi

# A source file that includes LibTorch takes 1.3 GB to compile: no more at once than fit.
available_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
jobs=$((available_kib / (2 * 1024 * 1024)))
[ "$jobs" -gt "$(nproc)" ] && jobs=$(nproc)
[ "$jobs" -lt 1 ] && jobs=1

cmake --preset "$preset" "${settings[@]}" > /dev/null
cmake --build "build/$preset" --parallel "$jobs" "$@"
