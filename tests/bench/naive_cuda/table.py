"""A markdown table of what run.sh left in a folder, beside the times of PyTorch that counterparts.py wrote.

    python3 tests/bench/naive_cuda/table.py OUTPUT --counterparts counterparts.json
"""

import argparse
import json
import math
import pathlib
import sys

OWN = pathlib.Path(__file__).parent / "tasks"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def times(ratio):
    """A ratio with three digits; empty where there is none."""
    if ratio is None:
        return ""
    return f"{ratio:.0f}x" if ratio >= 99.5 else f"{ratio:.3g}x"


def what_gained(account):
    """The actions after each of which a better kernel stood, in their order, with the factor where it is 2 % or more."""
    gains = []
    for one in account:
        if one["gain"] > 1:
            optimization, _, region = one["action"].partition("|")
            factor = f" {one['gain']:.3g}x" if one["gain"] >= 1.02 else ""
            gains.append(f"{optimization} {region}{factor}")
    return ", ".join(gains) or "nothing"


def row_of(result, counterpart):
    """The numbers of one task, times in microseconds as the judge measured them."""
    start, best = 1e6 * result["start_seconds"], 1e6 * result["best_seconds"]
    row = {"task": result["task"], "start": start, "best": best, "speedup": result["speedup"],
           "gained": what_gained(result["account"])}
    for way in ("eager", "compiled"):
        row[way] = 1e6 * counterpart[way] / best if way in counterpart and best > 0 else None
    if result["error"]:
        row["gained"] += f"; ended by an error: {result['error']}"
    elif result["speedup"] > 1 and not result["measured"]:
        row["gained"] += "; not measured at the end"
    return row


def print_rows(title, rows):
    if not rows:
        return
    print(f"## {title}\n")
    print("| task | start, us | best, us | speed-up | of eager | of `torch.compile` | what gained |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['task']} | {row['start']:.1f} | {row['best']:.1f} | {times(row['speedup'])} | {times(row['eager'])} | "
              f"{times(row['compiled'])} | {row['gained']} |")
    means = []
    for key in ("speedup", "eager", "compiled"):
        ratios = [row[key] for row in rows if row[key] is not None]
        means.append(times(geometric_mean(ratios)) if ratios else "")
    print(f"| **geometric mean of {len(rows)}** | | | {' | '.join(means)} | |")
    for key, name in (("eager", "eager"), ("compiled", "`torch.compile`")):
        ratios = [row[key] for row in rows if row[key] is not None]
        if ratios:
            print(f"\nAt least as fast as {name}: {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)}; at least 0.9 of "
                  f"it: {sum(ratio >= 0.9 for ratio in ratios)}.")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path, help="the folder of run.sh")
    parser.add_argument("--counterparts", type=pathlib.Path, help="what counterparts.py wrote")
    arguments = parser.parse_args()
    counterparts = {}
    if arguments.counterparts:
        for one in json.loads(arguments.counterparts.read_text())["counterparts"]:
            counterparts[one["task"]] = one
    rows = []
    for path in sorted(arguments.output.glob("*/result.json")):
        result = json.loads(path.read_text())
        rows.append(row_of(result, counterparts.get(result["task"], {})))
    own = {path.stem for path in OWN.glob("*.json")}
    print_rows("Naive kernels", [row for row in rows if row["task"] in own])
    print_rows("Other tasks", [row for row in rows if row["task"] not in own])
    without = sorted(path.stem for path in arguments.output.glob("*.log")
                     if not (arguments.output / path.stem / "result.json").exists())
    if without:
        print(f"Without a result: {', '.join(without)}.\n")
    vendor = counterparts.get("gemm_4096")
    if vendor and "eager" in vendor:
        print(f"cuBLAS, product of 4096 cubed in f32: {1e6 * vendor['eager']:.1f} us, "
              f"{2 * 4096**3 / vendor['eager'] / 1e12:.1f} Tflop/s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
