#!/usr/bin/env python3
"""Makes folders that `mtmc-optimize --replay` takes of runs of mtmc-optimize: the steps that were judged right, each with
the kernel it started from.

    tests/bench/steps_of_runs.py RUNS OUTPUT        RUNS: its --output, or a folder of such
"""
import json
import pathlib
import sys

SUFFIXES = {"python": ".py", "cpp": ".cpp", "cuda": ".cu", "opencl": ".cl"}


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def sequence(run):
    """The content of steps.json, and the texts by their names."""
    drafts, verdicts, steps, texts, names = {}, {}, [], {}, {}
    found = records(run / "journal.jsonl")
    start = next(record["kernel"] for record in found if record["record"] == "structure")
    language = None
    for record in found:
        if record["record"] == "draft" and "kernel" in record["draft"]:
            drafts[record["request"]] = record["draft"]
        if record["record"] == "evaluation":
            verdicts[record["key"]] = record["evaluation"]["verdict"]
        if record["record"] != "step" or record.get("draft") not in drafts:
            continue
        draft = drafts[record["draft"]]
        if verdicts.get(record.get("evaluation")) != "correct":
            continue
        kernel, (optimization, region) = draft["kernel"], record["action"].split("|", 1)
        language = language or kernel["language"]
        name = f"{len(steps) + 1}_{optimization}" + SUFFIXES.get(kernel["language"].get("syntax"), ".txt")
        texts[name] = (run / "kernels" / f"{kernel['id'][:16]}{pathlib.Path(name).suffix}").read_text()
        names[kernel["id"]] = name
        parent = "" if record["parent"] == start else names[record["parent"]]
        steps.append({"optimization": optimization, "region": region, "kernel": name, "parent": parent,
                      "message": draft.get("message", "")})
    return {"language": language["name"] if language else "", "steps": steps}, texts


def main():
    runs, output = (pathlib.Path(path) for path in sys.argv[1:])
    for journal in sorted(runs.rglob("journal.jsonl")):
        content, texts = sequence(journal.parent)
        if not content["steps"]:
            print(f"{journal.parent.name}: no step that is right")
            continue
        folder = output / journal.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "steps.json").write_text(json.dumps(content, indent=1) + "\n")
        for name, text in texts.items():
            (folder / name).write_text(text)
        print(f"{journal.parent.name}: {len(texts)} steps")


if __name__ == "__main__":
    main()
