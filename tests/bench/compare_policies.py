#!/usr/bin/env python3
"""Compares policies that searched the same tasks (mtmc-collect --policies best-rules,best-learnt,...).

usage: compare_policies.py FOLDER... [--baseline best-rules]

For each folder of mtmc-collect: the speed-up of every policy's best kernel by the collection's own judgements
(each kernel was judged once, so equal kernels are equally fast), its geometric mean over tasks, the shares of
tasks above 1x and 2x, the share of what is the best known of any search in the folder, and the ratio to the
baseline task by task, with a 95 % interval by a bootstrap over tasks. Runs of a policy that drew its actions
with several seeds are averaged in the logarithm.
"""
import argparse
import json
import math
import pathlib
import random


def last_record(journal):
    lines = journal.read_text(encoding="utf-8").splitlines()
    return json.loads(lines[-1]) if lines else {}


def results_of(folder):
    """{task: {policy: mean log2 of the speed-up}} and {task: log2 of the best known}."""
    means, best = {}, {}
    for journal in sorted(folder.glob("*/*/*/journal.jsonl")):
        finish = last_record(journal)
        if finish.get("record") != "finish":
            continue
        run = journal.parts[-3]
        task, policy = journal.parts[-4], run.rsplit("-", 1)[0]
        gain = math.log2(max(finish["speed_up"]["value"], 1.0))
        means.setdefault(task, {}).setdefault(policy, []).append(gain)
    for memory in sorted(folder.glob("*/memory.jsonl")):
        for line in memory.read_text(encoding="utf-8").splitlines():
            evaluation = json.loads(line).get("evaluation", {})
            if evaluation.get("verdict") != "correct" or "speed_up" not in evaluation:
                continue
            task = memory.parts[-2]
            best[task] = max(best.get(task, 0.0), math.log2(max(evaluation["speed_up"]["value"], 1.0)))
    return {task: {policy: sum(all_) / len(all_) for policy, all_ in of.items()} for task, of in means.items()}, best


def bootstrap(values, draws=5000):
    """Geometric mean of 2^value and its interval."""
    rng = random.Random(0)
    means = sorted(sum(rng.choices(values, k=len(values))) / len(values) for _ in range(draws))
    middle = sum(values) / len(values)
    return tuple(2**one for one in (middle, means[int(0.025 * draws)], means[int(0.975 * draws)]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--baseline", default="best-rules")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        results, best = results_of(folder)
        policies = sorted({policy for of in results.values() for policy in of})
        tasks = sorted(task for task, of in results.items() if len(of) == len(policies))
        print(f"\n{folder.name}: {len(tasks)} tasks\n")
        if arguments.baseline not in policies:
            print(f"no run of {arguments.baseline} is there: --baseline {' | '.join(policies)}")
            continue
        print(f"| policy | geometric mean | above 1.05x | above 2x | of the best known | over {arguments.baseline} |")
        print("|---|---|---|---|---|---|")
        for policy in policies:
            gains = [results[task][policy] for task in tasks]
            of_best = [gain - max(best.get(task, gain), gain) for gain, task in zip(gains, tasks)]
            ratio, low, high = bootstrap([results[t][policy] - results[t][arguments.baseline] for t in tasks])
            print(
                f"| {policy} | {bootstrap(gains)[0]:.3f} | {sum(g > math.log2(1.05) for g in gains) / len(gains):.2f} "
                f"| {sum(g > 1 for g in gains) / len(gains):.2f} | {bootstrap(of_best)[0]:.3f} "
                f"| {ratio:.3f} [{low:.3f}, {high:.3f}] |"
            )


if __name__ == "__main__":
    main()
