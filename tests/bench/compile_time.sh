#!/bin/sh
# How long files that use mtmc take to compile at -O2, against a file that only includes and uses nlohmann/json, and how long
# mtmc::compiled takes from nothing.
#
# Usage: tests/bench/compile_time.sh [TREE...]     copies of the repository to compare; without TREE this one
#
# Budgets against json alone: declarations only 1.3 times, a host's own backend (the OpenCL example) 3 times, header-only 10
# times and 1.5 GB. Processor seconds, which other programs disturb least: medians of three, taken in turn; what takes a
# minute, once.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- "$PWD"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/json.cpp" <<'EOF'
#include <nlohmann/json.hpp>
#include <cstdio>
int main() {
  auto document = nlohmann::json::parse(R"({"name": "gemm", "sizes": [1, 2, 3]})");
  document["steps"] = document["sizes"].size();
  std::printf("%s\n", document.dump(2).c_str());
}
EOF
# MTMC_COMPILED: what the form was called before 0.2.
separate="-DMTMC_SEPARATE_COMPILATION -DMTMC_COMPILED"

used_by() { # used_by COMMAND...: "processor seconds, peak KiB of one process"
  python3 - "$@" <<'EOF'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.2f} {used.ru_maxrss}")
EOF
}
measured() { # measured FILE FLAGS...
  file=$1
  shift
  used_by "${CXX:-g++}" -std=c++20 -O2 -DNDEBUG "$@" -c "$file" -o "$work/object.o"
}
median() { sort -n "$1" | sed -n 2p | cut -d' ' -f1; }
line() { awk "BEGIN { printf \"  %-44s %7.2f s  %6.2fx  %s\n\", \"$1\", $2, $2 / $json, \"${3-}\" }"; }

for _ in 1 2 3; do
  measured "$work/json.cpp" >>"$work/json"
  for tree; do
    name=$(echo "$tree" | tr / _)
    measured "$tree/examples/01_quickstart.cpp" "-I$tree/include" $separate >>"$work/quickstart$name"
    measured "$tree/examples/04_opencl_backend.cpp" "-I$tree/include" $separate >>"$work/backend$name"
  done
done
json=$(median "$work/json")
echo "compile time: $(${CXX:-g++} --version | head -n 1)"
line "json alone" "$json"
for tree; do
  name=$(echo "$tree" | tr / _)
  echo "$tree"
  line "quickstart, declarations only" "$(median "$work/quickstart$name")"
  line "a backend of one's own, declarations only" "$(median "$work/backend$name")"
  whole=$(measured "$tree/examples/01_quickstart.cpp" "-I$tree/include")
  line "quickstart, header-only" "${whole% *}" "$(awk "BEGIN { printf \"%.1f GB\", ${whole#* } / 1e6 }")"
  echo '#include <mtmc/implementation.hpp>' >"$work/mtmc.cpp"
  whole=$(measured "$work/mtmc.cpp" "-I$tree/include")
  line "mtmc.cpp" "${whole% *}" "$(awk "BEGIN { printf \"%.1f GB\", ${whole#* } / 1e6 }")"
  cmake -S "$tree" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
    -DCMAKE_CXX_COMPILER_LAUNCHER=env -DMTMC_BUILD_TESTS=OFF -DMTMC_BUILD_EXAMPLES=OFF >/dev/null
  whole=$(used_by cmake --build "$work/build" --target mtmc_compiled --parallel "$(nproc)")
  line "mtmc::compiled, all its files" "${whole% *}" "$(awk "BEGIN { printf \"%.1f GB\", ${whole#* } / 1e6 }")"
  rm -rf "$work/build"
done
