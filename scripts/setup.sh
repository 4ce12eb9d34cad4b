#!/usr/bin/env bash
# Installs what offstage needs on Debian 12: packages, and LibTorch in a virtual environment inside
# ${XDG_CACHE_HOME:-~/.cache}/offstage. Run it as often as you like; with nothing to do it takes a
# fraction of a second. It writes nowhere else outside the checkout.
#   scripts/setup.sh            what building needs
#   scripts/setup.sh --gpu      also what PyTorch needs of CUDA, some 3 GB: the preset gpu links it
#   scripts/setup.sh --tests    also PyTorch's own dependencies and transformers, into the same
#                               environment: tests compare with them; and a browser, which opens
#                               the HTML reports
set -euo pipefail

torch_version=2.11.0
transformers_version=5.23.0  # the newest that was there, November 2026; wants Python 3.10 or newer
# The CUDA 13.0 libraries libtorch_cpu asks for by name, also where there is no GPU.
cuda_wheels=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)

packages=(
  ca-certificates git g++ cmake ninja-build ccache pkg-config    # build
  python3 python3-venv python3-yaml                              # LibTorch's wheel, test scripts
  libsimgrid-dev libboost-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev
  libnlopt-cxx-dev libspdlog-dev libhwloc-dev libnuma-dev libxxhash-dev liburing-dev libfccp-dev           # libraries
  catch2 clang-format clang-tidy                                 # tests
  bible-kjv                                                      # the demo's text
  gnuplot-nox                                                    # plots of `offstage capacity`
  libboost-mpi-dev openmpi-bin                                   # studies over several computers
  node-d3 libjs-chart.js                                         # HTML reports
)

test_packages=(chromium chromium-driver python3-selenium fonts-dejavu-core)

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    fail "not root and no sudo; as root, run: apt-get install --no-install-recommends ${missing[*]}"
  fi
}

install_packages() {
  command -v dpkg-query > /dev/null || fail "this script knows Debian 12 only; install: ${packages[*]}"
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2> /dev/null || true)
  missing=()
  local package
  for package in "${packages[@]}"; do
    grep -qx "installed $package" <<< "$installed" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing Debian packages: ${missing[*]}"
  as_root apt-get -q -o Acquire::Retries=3 update >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
    install --no-install-recommends "${missing[@]}" >&2
}

# Both libraries in one of the folders that cmake/FindLibTorch.cmake looks into.
has_cuda_libraries() {
  local folders=("$1"/nvidia/cu13/lib /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64)
  local library folder found
  for library in libcudart.so.13 libcupti.so.13; do
    found=no
    for folder in "${folders[@]}"; do
      [ -e "$folder/$library" ] && found=yes
    done
    [ $found = yes ] || return 1
  done
}

install_torch() {
  local cache venv site
  cache="${XDG_CACHE_HOME:-$HOME/.cache}/offstage"
  venv="$cache/venv-torch-$torch_version"
  mkdir -p "$cache"
  # Two checkouts may be set up at once.
  exec 9> "$cache/setup.lock"
  flock 9

  site=$(echo "$venv"/lib/python3*/site-packages)
  # pip writes RECORD last: where it is, the wheel is whole.
  if [ ! -e "$site/torch-$torch_version.dist-info/RECORD" ]; then
    say "installing LibTorch $torch_version into $venv"
    # Debian's own python, whatever comes first in PATH: its version is known to work.
    /usr/bin/python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -q --no-deps --retries 5 "torch==$torch_version" >&2
    site=$(echo "$venv"/lib/python3*/site-packages)
  fi
  if ! has_cuda_libraries "$site"; then
    say "no CUDA 13 toolkit here; installing the libraries LibTorch loads: ${cuda_wheels[*]}"
    "$venv/bin/python" -m pip install -q --no-deps --retries 5 "${cuda_wheels[@]}" >&2
    has_cuda_libraries "$site" || fail "libcudart.so.13 and libcupti.so.13 are still missing in $site"
  fi
}

# CUDA's libraries and headers, NCCL and cuDNN, in the versions PyTorch was built with.
install_cuda_packages() {
  local venv site
  venv="${XDG_CACHE_HOME:-$HOME/.cache}/offstage/venv-torch-$torch_version"
  site=$(echo "$venv"/lib/python3*/site-packages)
  [ -e "$site/nvidia/nccl/lib/libnccl.so.2" ] && [ -e "$site/nvidia/cudnn/lib/libcudnn.so.9" ] &&
    [ -e "$site/nvidia/cu13/lib/libcublas.so.13" ] && return
  say "installing the CUDA libraries that PyTorch needs"
  "$venv/bin/python" -m pip install -q --retries 5 "torch==$torch_version" >&2
}

# PyTorch from Python loads the CUDA libraries it was built with, also without a GPU.
install_test_packages() {
  local venv site
  venv="${XDG_CACHE_HOME:-$HOME/.cache}/offstage/venv-torch-$torch_version"
  site=$(echo "$venv"/lib/python3*/site-packages)
  # Installed last: where it is, so is all the rest.
  [ -e "$site/transformers-$transformers_version.dist-info/RECORD" ] && return
  say "installing transformers $transformers_version and what PyTorch needs in Python"
  "$venv/bin/python" -m pip install -q --retries 5 "torch==$torch_version" numpy safetensors >&2
  "$venv/bin/python" -m pip install -q --retries 5 "torch==$torch_version" \
    "transformers==$transformers_version" >&2
}

tests=no
gpu=no
case "${1:-}" in
  "") ;;
  --gpu) gpu=yes ;;
  --tests) tests=yes ;;
  *)
    say "no option '$1'; there are --gpu and --tests"
    exit 2
    ;;
esac

if [ $tests = yes ]; then packages+=("${test_packages[@]}"); fi
install_packages
install_torch
if [ $gpu = yes ]; then install_cuda_packages; fi
if [ $tests = yes ]; then install_test_packages; fi
