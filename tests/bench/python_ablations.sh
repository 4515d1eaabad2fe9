#!/bin/sh
# The paper's ablations (tables 6 and 7) over a sample of KernelBench: the loop with its usual policy, with one that chooses
# at random, with a language model as policy, free-form steps, and one pass without steps; each judged by both rules.
#
#   tests/bench/python_ablations.sh CHECKOUT OUTPUT [--python P] [--judge-on cpu] [OPTIONS OF mtmc-optimize...]
#
# SAMPLE names the problems (files of the checkout; those whose number ends in 3 if it is not set), PROGRAMS the folder with
# mtmc-optimize and mtmc-bench, ABLATIONS which of them. With `--coder openai --batch OUTPUT/batch` each round ends with exit code 75 and
# requests to answer; the same command goes on from there. OUTPUT/<ablation>/table.md are the tables.
set -eu
checkout=$1 output=$2
shift 2
programs=${PROGRAMS:-build/release/examples}
sample=${SAMPLE:-$(ls "$checkout"/KernelBench/level[123]/*3_*.py | grep -E '/[0-9]*3_[^/]*$')}
judge=''
previous=''
for argument in "$@"; do # of mtmc-optimize's options those that mtmc-bench has, too
  case "$previous" in --python | --judge-on) judge="$judge $previous $argument" ;; esac
  previous=$argument
done
waiting=0
for ablation in ${ABLATIONS:-usual random-policy chat-policy free-form single-pass}; do
  folder=$output/$ablation
  mkdir -p "$folder"
  how=''
  [ "$ablation" = usual ] || how="--ablation $ablation"
  code=0
  # shellcheck disable=SC2086 # lists of words
  "$programs"/mtmc-optimize $sample $how "$@" --output "$folder/runs" --resume || code=$?
  case $code in
  75) waiting=75; continue ;;
  0 | 2) ;; # a problem that cannot be used ends its own run alone
  *) exit $code ;;
  esac
  # shellcheck disable=SC2086
  "$programs"/mtmc-bench --folder "$checkout" --ending 3 --candidates "$folder/runs" --output "$folder" $judge
done
exit $waiting
