#!/bin/sh
# How long the quickstart takes to compile at -O2, against a file that only includes and uses nlohmann/json.
# Budget (design, section 9): 2.5 times. Medians of five, taken in turn. `header-only` is the same file with
# everything defined in headers, once, because it takes a minute.
set -eu
cd "$(dirname "$0")/../.."
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

seconds() { # seconds FILE FLAGS...
  begin=$(date +%s%N)
  file=$1
  shift
  ${CXX:-g++} -std=c++20 -O2 -DNDEBUG -Iinclude "$@" -c "$file" -o "$work/object.o"
  end=$(date +%s%N)
  awk "BEGIN { print ($end - $begin) / 1e9 }"
}
median() { sort -n "$1" | sed -n 3p; }

for _ in 1 2 3 4 5; do
  seconds "$work/json.cpp" >>"$work/json"
  seconds examples/01_quickstart.cpp -DMTMC_SEPARATE_COMPILATION >>"$work/compiled"
done
json=$(median "$work/json")
compiled=$(median "$work/compiled")
whole=$(seconds examples/01_quickstart.cpp)
echo "compile time: $(${CXX:-g++} --version | head -n 1)"
awk "BEGIN {
  printf \"  json alone                    %6.2f s\n\", $json
  printf \"  quickstart, mtmc::compiled    %6.2f s  %5.2fx\n\", $compiled, $compiled / $json
  printf \"  quickstart, header-only       %6.2f s  %5.2fx\n\", $whole, $whole / $json
}"
