#!/usr/bin/env bash
# Runs clang-tidy with the rules of .clang-tidy.
#   scripts/lint.sh BUILD [source ...]      BUILD: a folder that holds compile_commands.json
# Without sources: all of them but the tests and those that include LibTorch, which take a minute each.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
shift || true
sources=("$@")
if [ ${#sources[@]} -eq 0 ]; then
  mapfile -t sources < <(git ls-files 'platform/*.cpp' 'workloads/*.cpp' 'scheduler/*.cpp' \
    'report/*.cpp' 'sim/*.cpp' 'cli/*.cpp')
fi

# Findings go to stdout; the count of suppressed ones in system headers, on stderr, says nothing.
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2> >(grep -v 'warnings\? generated' >&2)
echo "lint: ${#sources[@]} sources are clean"
