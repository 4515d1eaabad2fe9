#!/bin/sh
# How far the rules end from an exhaustive search: every legal action on the start kernel, and every legal action on
# each correct kernel that gave (offline coder, one draft an action), for examples/tasks/cpu and steps/cpu. Both winners
# are then timed against each other. Asked for: the rules within 10 % on at least 8 of these tasks. About an hour on 2
# cores that do nothing else. Usage: depth_two.sh [TASK.json...]
set -eu
cd "$(dirname "$0")/../.."
programs=build/release/examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

field() { sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1"; }
drafts() { grep -o '"drafts":' "$1" | wc -l; }
ratio() {
  pair=$(sed -n 's/.*"speed_up":{\([^}]*\)},"verdict":"correct".*/\1/p' "$1")
  for part in value low high; do echo "$pair" | sed -n "s/.*\"$part\":\([^,]*\).*/\1/p"; done
}

[ $# -gt 0 ] || set -- examples/tasks/cpu/*.json tests/bench/steps/cpu/*.json
echo "depth two: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores," \
  "$(${CXX:-c++} --version | head -n 1), $(date -u +%F)"
for task; do
  name=$(basename "$task" .json)
  $programs/mtmc-optimize "$task" --output "$work/rules" --json --quiet >"$work/$name.rules"
  $programs/mtmc-optimize "$task" --output "$work/all" --json --quiet --policy random --beam 100000 --steps 2 \
    --minimum-gain 0 --patience 0 >"$work/$name.all"
  $programs/mtmc-evaluate "$task" "$work/rules/$name/best.cpp" --incumbent "$work/all/$name/best.cpp" --promote --json \
    >"$work/$name.pair" || true
  printf '  %-18s rules %6.2fx in %2d drafts, exhaustive %6.2fx in %3d, rules over exhaustive %.3f [%.3f, %.3f]\n' "$name" \
    "$(field "$work/$name.rules" speedup)" "$(drafts "$work/$name.rules")" \
    "$(field "$work/$name.all" speedup)" "$(drafts "$work/$name.all")" $(ratio "$work/$name.pair")
  [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp -r "$work/." "$KEEP"; }
done
