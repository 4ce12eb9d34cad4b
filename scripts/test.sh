#!/usr/bin/env bash
# Everything that must hold before a change goes in: format, all tests optimised, and most tests that
# need no LibTorch once more under the sanitizers. The last line is ctest's own summary. Lint, which
# takes longer than all of these together, is scripts/lint.sh, by hand.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

say "set-up"
scripts/setup.sh --tests

say "format"
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run --Werror

say "build and test with sanitizers, without LibTorch (build/sanitize)"
cmake --preset dev -B build/sanitize -DOFFSTAGE_EXEC=OFF > /dev/null
cmake --build build/sanitize --parallel "$(nproc)"
# Searches that take minutes under the sanitizers run optimised, below.
ctest --test-dir build/sanitize --output-on-failure --no-tests=error --parallel "$(nproc)" --no-label-summary -LE slow

say "build (build/release)"
scripts/build.sh release

# What of it needs no GPU; nearly all objects are the release build's, out of ccache.
say "build the preset gpu (build/gpu) and look at what it says without a GPU"
scripts/build.sh gpu --target offstage offstage-exec offstage_gpu_tests
ctest --test-dir build/gpu --output-on-failure --no-tests=error --no-label-summary -R '^gpu:'

say "test"
ctest --test-dir build/release --output-on-failure --no-tests=error --no-label-summary
