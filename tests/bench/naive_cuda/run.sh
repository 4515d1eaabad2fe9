#!/bin/sh
# Makes the naive CUDA kernels fast with the offline coder, three tasks at a time on one GPU: those of tasks and of
# examples/tasks/cuda, or those that are named, of later_tasks, too. OUTPUT/NAME gets what mtmc-optimize writes,
# OUTPUT/NAME.log what it says. A task that has a result there already is left alone. Then: table.py OUTPUT.
# Usage: run.sh MTMC_OPTIMIZE OUTPUT [TASK.json | NAME]...    OPTIONS="--steps 10" are mtmc-optimize's
set -eu
[ $# -ge 2 ] || { sed -n 's/^# Usage: //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
examples=$(cd "$here/../../../examples/tasks/cuda" && pwd)
program=$1
output=$2
shift 2
command -v "$program" >/dev/null || { echo "$program is no program" >&2; exit 2; }
mkdir -p "$output"
[ $# -gt 0 ] || set -- "$here"/tasks/*.json "$examples"/*.json

file_of() {
  for file in "$1" "$here/tasks/$1.json" "$here/later_tasks/$1.json" "$examples/$1.json"; do
    [ ! -f "$file" ] || { echo "$file"; return; }
  done
  echo "there is no task $1" >&2
  return 1
}

files=
for task; do
  file=$(file_of "$task")
  [ -f "$output/$(basename "$file" .json)/result.json" ] || files="$files $file"
done
begin=$(date +%s)
# Names of this folder have no spaces; those of other tasks must not have any.
printf '%s\n' $files | xargs -r -P 3 -I FILE sh -c '
  name=$(basename "$3" .json)
  if "$1" "$3" ${OPTIONS:---steps 10} --output "$2" --resume >"$2/$name.log" 2>&1; then
    echo "$name: $(grep "^ *best " "$2/$name.log" | tail -n 1)"
  else
    echo "$name: exit code $?, see $2/$name.log"
  fi' sh "$program" "$output" FILE
echo "$(($(date +%s) - begin)) s in all"
