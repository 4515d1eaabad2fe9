"""Checks the trainer with a tiny model on this processor, in about two minutes:

    python check.py DATA... --environment mtmc-environment

DATA are folders of journals, or data sets with texts: a few trees are enough.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import tempfile
import time
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

import language_model
import train
from action_policy import ActionPolicy, judge
from augmentation import AugmentationOptions, in_other_words
from cloning import PROBE, CloningOptions, visit, with_stop
from environment import Environment, State, with_untried
from ppo import Ppo, PpoOptions, RatioError, Sample, with_advantages

# Short prompts, for a tiny model and little time: in a tree, task and history tell which kernel it is.
CARD = {
    "schema": 1,
    "name": "check",
    "template": "{task}\n\n{history}\n\n{actions}\n\nNext step:",
    "normalization": "sum",
    "region_names": "text",
}


# Parameters of the known shapes, as their publishers count them.
PARAMETERS = {
    "deepseek-coder-1.3b": 1_346_471_936,
    "llama-3.2-1b": 1_235_814_400,
    "qwen2.5-1.5b": 1_543_714_304,
}


def check_shapes(tokeniser: PreTrainedTokenizerBase) -> None:
    """The known shapes are those of the models that they are named after."""
    for name, parameters in PARAMETERS.items():
        with torch.device("meta"):
            model = language_model.known_at_random(name, tokeniser, torch.bfloat16)
        model.tie_weights()
        assert sum(one.numel() for one in model.parameters()) == parameters, name


def one_by_one(policy: ActionPolicy, state: State) -> tuple[torch.Tensor, float]:
    """What a policy thinks of a state, each action in a sequence of its own."""
    encoded = policy.encode(state)
    scores = []
    for action in encoded.actions:
        ids = torch.tensor([encoded.prompt.tolist() + action])
        logits = policy.model(input_ids=ids).logits[0].log_softmax(1)
        begin = len(encoded.prompt)
        scores.append(sum(logits[begin + i - 1, token] for i, token in enumerate(action)))
    hidden = policy.base.get_decoder()(input_ids=encoded.prompt[None]).last_hidden_state[0, -1]
    return torch.stack(scores).log_softmax(0), float(policy.critic(hidden))


def check_stop(environment: Environment) -> None:
    """Stopping at once is a label of the same kind as others: in proportion of e^(0 / temperature)."""
    for tree in environment.trees:
        state = environment.reset(tree, 0)
        first = with_stop(state, environment)
        best = max(state.value, 0.0)
        odds = math.exp((0.0 - state.value) / environment.temperature)
        assert first.actions == (*state.actions, " stop") and first.value == best
        assert math.isclose(sum(first.soft), 1.0)
        assert math.isclose(first.soft[-1] / max(first.soft[:-1]), odds, rel_tol=1e-3, abs_tol=1e-9)


def steps_of(prompt: str) -> list[tuple[str, str]]:
    """The steps that a prompt lists, each with what the legend says of its region."""
    legend = dict(re.findall(r"^(R\d+): (.*)$", prompt, re.MULTILINE))
    listed = re.findall(r"^- (\w+)(?: (R\d+))?$", prompt, re.MULTILINE)
    return [(kind, legend.get(number, "")) for kind, number in listed]


def check_other_words(environment: Environment) -> None:
    """Other words offer the same steps on the same regions, and list them as mtmc does."""
    chance = random.Random(1)
    order_alone = AugmentationOptions(furthest=0, other_names=0.0, no_task=0.0)
    changed = 0
    for state in map(with_untried, visit(environment, environment.trees, CloningOptions(episodes=2), None, 0)):
        told = in_other_words(state, chance, order_alone)
        assert sorted(steps_of(told.prompt)) == sorted(steps_of(state.prompt))
        of_both = [dict(re.findall(r"^(R\d+): (.*)$", one.prompt, re.MULTILINE)) for one in (state, told)]
        for before, after in zip(state.actions, told.actions, strict=True):
            kinds = [one.split()[0] for one in (before, after)]
            regions = [legend.get(one.split()[-1], "") for legend, one in zip(of_both, (before, after), strict=True)]
            assert kinds[0] == kinds[1] and regions[0] == regions[1], (before, after)
        numbers = list(dict.fromkeys(re.findall(r"^- \w+ R(\d+)$", told.prompt, re.MULTILINE)))
        assert numbers == [str(i + 1) for i in range(len(numbers))], numbers
        all_of_it = in_other_words(state, chance, AugmentationOptions())
        listed = re.findall(r"^- (\w+(?: R\d+)?)$", all_of_it.prompt, re.MULTILINE)
        assert {one.strip() for one in all_of_it.actions} <= set(listed), (all_of_it.actions, listed)
        changed += told.prompt != state.prompt
    assert changed > 0, "no state was told otherwise"


def check_scores(environment: Environment, output: Path, tokens: int) -> None:
    """Packed sequences say what single ones do, whatever stands beside them in a batch, also after a file."""
    policy = ActionPolicy(*language_model.pretrained(str(output), torch.float32), tokens)
    check_shapes(policy.tokeniser)
    probed, _ = judge(policy, [PROBE], tokens)[0]
    assert probed[0] > probed[1], "a server of this model would be refused"
    for parameter in policy.critic.parameters():
        torch.nn.init.normal_(parameter)
    states = visit(environment, environment.trees, CloningOptions(episodes=1), None, 0)[:12]
    worst = 0.0
    with torch.no_grad():
        judged = judge(policy, states, 4 * tokens)
        for state, (packed, value) in zip(states, judged, strict=True):
            single, single_value = one_by_one(policy, state)
            worst = max(worst, float((packed - single).abs().max()), abs(value - single_value))
            assert math.isclose(float(packed.exp().sum()), 1.0, abs_tol=1e-5)
        entropies = policy(states).entropies()
        policy.checkpointing = True
        for (kept, _), (anew, _) in zip(judged, judge(policy, states, 4 * tokens), strict=True):
            worst = max(worst, float((kept - anew).abs().max()))
    assert worst < 2e-3, f"packed and single sequences differ by {worst}"
    assert float(entropies.min()) >= 0 and float(entropies.max()) <= 1 + 1e-5
    print(f"packed and single sequences differ by at most {worst:.1e} in {len(states)} states")


def check_ppo(environment: Environment, output: Path, tokens: int) -> None:
    """Advantages are those of the books, and log-probabilities of another policy are found out."""
    options = PpoOptions(discount=0.5, trace=0.5, rollout=16, episodes=4)
    state = State(0.0, False)
    end = Sample(state, 0, 0.0, value=0.5, reward=2.0, ended=True)
    way = Sample(state, 0, 0.0, value=1.0, reward=1.0, ended=False, next_value=0.5)
    cut = Sample(state, 0, 0.0, value=1.0, reward=0.0, ended=False, next_value=4.0)
    with_advantages([[way, end, cut]], options)
    assert (way.advantage, end.advantage, cut.advantage) == (0.25 + 0.25 * 1.5, 1.5, 1.0)

    policy = ActionPolicy(*language_model.pretrained(str(output), torch.float32), tokens)
    ppo = Ppo(policy, environment, environment.trees, options)
    lanes, _ = ppo.play()
    for lane in lanes:
        for sample in lane:
            sample.log_probability -= 0.01
    try:
        ppo.learn(with_advantages(lanes, options))
    except RatioError as error:
        print(f"as it should: {error}")
    else:
        raise AssertionError("log-probabilities of another policy went unnoticed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--environment", default="mtmc-environment")
    given = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        card = Path(folder) / "card.json"
        card.write_text(json.dumps(CARD), encoding="utf-8")
        common = ["--environment", given.environment, "--card", str(card), "--output", folder + "/policy"]
        common += ["--context", "2048", "--held-out", "0", "--longest-prompt", "2000"]
        learning = ["--model", "tiny", "--clone-rate", "2e-3", "--clone-rounds", "2", "--clone-episodes", "4"]
        learning += ["--clone-minibatch", "4"]
        learning += ["--clone-epochs", "5", "--ppo-steps", "96", "--ppo-rollout", "48", "--score-episodes", "3"]
        options = train.arguments([*given.data, *common, *learning])
        records = train.train(options)

        scores = {one["stage"]: one["training"] for one in records.scores}
        assert scores["clone"]["greedy"] > scores["untrained"]["greedy"] + 0.1, scores
        assert scores["clone"]["sampled"] > scores["untrained"]["sampled"] + 0.1, scores
        text = (Path(folder) / "policy/metrics.jsonl").read_text(encoding="utf-8")
        updates = [one for one in map(json.loads, text.splitlines()) if one["kind"] == "ppo"]
        assert updates and all(one["first_ratio_error"] < 1e-3 for one in updates), updates
        # What was saved is read again, its card by mtmc itself.
        options.card = folder + "/policy/model/policy_card.json"
        with train.environment_of(options) as environment:
            assert environment.card["name"] == "model"
            check_stop(environment)
            check_scores(environment, Path(folder) / "policy/model", options.context)
            check_ppo(environment, Path(folder) / "policy/model", options.context)
        options.card = str(Path(__file__).with_name("short_card.json"))
        with train.environment_of(options) as environment:
            check_other_words(environment)
    print(f"all is well, after {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
