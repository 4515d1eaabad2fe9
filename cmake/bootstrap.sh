#!/bin/sh
# Sees to it that what building mtmc needs is there. On Debian and Ubuntu, as root or with a sudo that asks for no
# password, it installs what is missing with apt-get; elsewhere it names what is missing and the command to type,
# and fails. With nothing missing it says nothing and is done in a moment.
#
# Usage: cmake/bootstrap.sh [--bench] [--clang] [--fuzz] [--opencl] [--python] [--style] [--all]
#   (nothing)  compiler, cmake, ninja and the header libraries of the SDK, the tests and the examples; libcurl,
#              certificates of authorities and the openssl program, for endpoints and their tests
#   --bench    also Google Benchmark
#   --clang    also Clang and its OpenMP
#   --fuzz     also Clang and its fuzzer
#   --opencl   also OpenCL for the processor (PoCL), which examples/04_opencl_backend and its test run on
#   --python   also PyTorch and Triton from PyPI, into build/python, for the tests that record modules (2.7 GB to fetch,
#              5 GB on the disk; not part of --all)
#   --style    also Doxygen, and clang-format and clang-tidy, version 19, which Debian 12 does not have: from PyPI,
#              into build/style
#   --all      all of that but --python
set -eu

bench= clang= fuzz= opencl= python= style=
for argument; do
  case $argument in
    --bench) bench=yes ;;
    --clang) clang=yes ;;
    --fuzz) clang=yes fuzz=yes ;;
    --opencl) opencl=yes ;;
    --python) python=yes ;;
    --style) style=yes ;;
    --all) bench=yes clang=yes fuzz=yes opencl=yes style=yes ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

say() { printf 'bootstrap: %s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

any_file() { # whether one of these is there
  for file; do [ ! -e "$file" ] || return 0; done
  return 1
}

# absent_headers COMPILER HEADER...: those that the compiler does not find; all of them without the compiler.
absent_headers() {
  compiler=$1
  shift
  if ! have "$compiler"; then
    echo "$@"
    return
  fi
  for header; do
    printf '#if !__has_include(<%s>)\n%s\n#endif\n' "$header" "$header"
  done | "$compiler" -E -P -x c++ -std=c++20 -
}

style_tools="$(dirname "$0")/../build/style"
python_tools="$(dirname "$0")/../build/python"
has_python_tools() { # where tests/backend/python looks for them
  "$python_tools/bin/python" -c 'import torch, triton' 2>/dev/null
}
has_style_tools() { # where tests/style looks for them
  for tool in clang-format clang-tidy; do
    have $tool-19 || { "$style_tools/bin/$tool" --version 2>/dev/null | grep -q 'version 19\.'; } || return 1
  done
}

# The Debian packages that are missing.
missing_packages() {
  have g++ || echo g++
  have cmake || echo cmake
  have ninja || echo ninja-build
  headers="nlohmann/json.hpp tinyxml2.h doctest/doctest.h CLI/CLI.hpp${bench:+ benchmark/benchmark.h}"
  for header in $(absent_headers g++ $headers); do
    case $header in
      nlohmann/*) echo nlohmann-json3-dev ;;
      tinyxml2.h) echo libtinyxml2-dev ;;
      doctest/*) echo doctest-dev ;;
      CLI/*) echo libcli11-dev ;;
      benchmark/*) echo libbenchmark-dev ;;
    esac
  done
  # Any flavour will do.
  any_file /usr/lib/*/libcurl.so.4 /usr/lib/*/libcurl-gnutls.so.4 /usr/lib*/libcurl.so.4 \
    /usr/local/lib*/libcurl.so.4 || echo libcurl4
  have openssl || echo openssl
  # Endpoints on the internet are trusted by what lies here.
  any_file /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem || echo ca-certificates
  if [ "$clang" ]; then
    have clang++ || echo clang
    [ -z "$(absent_headers clang++ omp.h)" ] || echo libomp-dev
  fi
  if [ "$fuzz" ]; then
    # Debian has it in a package of its own, Ubuntu 22.04 beside the headers.
    major=$(clang++ -dumpversion 2>/dev/null || echo 14)
    major=${major%%.*}
    if ! any_file /usr/lib/llvm-"$major"/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a; then
      for package in libclang-rt-"$major"-dev libclang-common-"$major"-dev; do
        if apt-cache show $package >/dev/null 2>&1; then
          echo $package
          break
        fi
      done
    fi
  fi
  if [ "$opencl" ]; then
    # Any loader and any platform will do.
    any_file /usr/lib/*/libOpenCL.so.1 /usr/lib*/libOpenCL.so.1 /usr/local/lib*/libOpenCL.so.1 \
      || echo ocl-icd-libopencl1
    any_file /etc/OpenCL/vendors/*.icd || echo pocl-opencl-icd
  fi
  if [ "$python" ]; then
    has_python_tools || python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  fi
  if [ "$style" ]; then
    have doxygen || echo doxygen
    has_style_tools || python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  fi
}

# older_than VERSION LEAST: compares major.minor
older_than() {
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" != "$2" ]
}

apt() { # apt-get, its words kept for when it fails
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1
}
install() { apt install -y --no-install-recommends "$@"; }

missing=$(echo $(missing_packages))
if [ "$missing" ]; then
  have apt-get || fail "missing: $missing (these are the names of the Debian packages; please install them)"
  if [ "$(id -u)" -eq 0 ]; then
    as_root=
  elif have sudo && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
  else
    fail "missing: $missing. Please type: sudo apt-get install --no-install-recommends $missing"
  fi

  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1; then
    say "reading the package lists"
    apt update || true # one broken list need not matter
  fi
  say "installing $missing"
  if ! install $missing; then
    say "trying again with fresh package lists"
    apt update || true
    if ! install $missing; then
      cat "$log" >&2
      fail "apt-get could not install: $missing (its words are above). Is there a network?"
    fi
  fi
fi

cmake_version=$(cmake --version | sed -n '1s/[^0-9]*//p')
if older_than "$cmake_version" 3.25; then
  fail "cmake $cmake_version is too old, mtmc needs 3.25 (a newer one: python3 -m pip install cmake)"
fi
gcc_version=$(g++ -dumpfullversion)
if older_than "$gcc_version" 12; then
  fail "g++ $gcc_version is too old, mtmc needs 12 (on Ubuntu 22.04: apt-get install g++-12, and then" \
    "update-alternatives --install /usr/bin/g++ g++ /usr/bin/g++-12 120)"
fi
if [ "$clang" ] && older_than "$(clang++ -dumpversion)" 14; then
  fail "clang++ $(clang++ -dumpversion) is too old, mtmc needs 14"
fi
if [ "$style" ] && ! has_style_tools; then
  say "installing clang-format and clang-tidy 19 into build/style"
  python3 -m venv "$style_tools"
  "$style_tools/bin/pip" --quiet --disable-pip-version-check install clang-format==19.1.7 clang-tidy==19.1.0.1 \
    || fail "pip could not install clang-format and clang-tidy (its words are above). Is there a network?"
fi
if [ "$python" ] && ! has_python_tools; then
  say "installing PyTorch and Triton into build/python"
  python3 -m venv "$python_tools"
  "$python_tools/bin/pip" --quiet --disable-pip-version-check install torch==2.15.0 numpy einops \
    || fail "pip could not install torch (its words are above). Is there a network, and are 10 GB free?"
fi
