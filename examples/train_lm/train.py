"""Trains a language model as mtmc's policy on recorded searches: cloning, then PPO.

    python train.py data.jsonl --model tiny --output policy

README.md tells the rest.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path

import torch

import language_model
from action_policy import ActionPolicy
from augmentation import AugmentationOptions
from cloning import CloningOptions, clone, visit
from environment import Environment, State
from measures import Judge, Records, judge_of, ratios
from ppo import Ppo, PpoOptions

# Of a limit of time, where PPO follows.
CLONING_PART = 0.6


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a language model as a policy.")
    parser.add_argument("data", nargs="+", help="folders of journals, and data sets with texts.jsonl beside them")
    parser.add_argument("--output", type=Path, required=True, help="folder for model, card and curves")
    parser.add_argument("--environment", default="mtmc-environment", help="the program that serves the data")
    parser.add_argument("--card", help="policy card by which prompts are made; else that of the paper")
    parser.add_argument("--held-out", type=float, default=0.2, help="part of the tasks not trained on")
    parser.add_argument("--split-seed", type=int, default=1, help="which tasks those are")
    parser.add_argument("--longest-prompt", type=int, default=0, help="bytes, see mtmc-environment")
    parser.add_argument("--temperature", type=float, default=0.1, help="of soft labels")

    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", choices=language_model.SIZES, default="tiny", help="a model from scratch")
    model.add_argument("--pretrained", help="a folder of weights and tokeniser in Hugging Face's layout")
    model.add_argument("--config", choices=language_model.KNOWN, help="a known shape, with --random")
    parser.add_argument("--random", action="store_true", help="random weights for --config; there are no others")
    parser.add_argument("--lora", action="store_true", help="train low-rank adapters only")
    parser.add_argument("--context", type=int, default=4096, help="most tokens of a prompt with an action")
    parser.add_argument("--normalization", choices=["sum", "token_mean"], default="sum")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bfloat16", action="store_true", help="compute in bfloat16")
    parser.add_argument("--activation-checkpointing", action="store_true", help="less memory, more time")

    parser.add_argument("--stages", default="clone,ppo", help="of clone and ppo, in this order")
    parser.add_argument("--clone-rounds", type=int, default=CloningOptions.rounds)
    parser.add_argument("--clone-episodes", type=int, default=CloningOptions.episodes)
    parser.add_argument("--clone-epochs", type=int, default=CloningOptions.epochs)
    parser.add_argument("--clone-minibatch", type=int, default=CloningOptions.minibatch)
    parser.add_argument("--clone-rate", type=float, default=CloningOptions.rate)
    parser.add_argument("--augment", action="store_true", help="tell states in other words, see augmentation.py")
    parser.add_argument("--ignore-untried", action="store_true", help="do not teach that such actions are unlikely")
    parser.add_argument("--language", type=float, default=CloningOptions.language, help="see cloning.py")
    parser.add_argument("--ppo-steps", type=int, default=PpoOptions.steps)
    parser.add_argument("--ppo-rollout", type=int, default=PpoOptions.rollout)
    parser.add_argument("--ppo-episodes", type=int, default=PpoOptions.episodes, help="side by side")
    parser.add_argument("--seconds", type=float, default=0, help="of it all but the last scores; 0 = no limit")
    parser.add_argument("--ppo-epochs", type=int, default=PpoOptions.epochs)
    parser.add_argument("--ppo-rate", type=float, default=PpoOptions.rate)
    parser.add_argument("--value-rate", type=float, default=PpoOptions.value_rate)
    parser.add_argument("--minibatch", type=int, default=PpoOptions.minibatch, help="states of a PPO update")
    parser.add_argument("--entropy", type=float, default=PpoOptions.entropy, help="weight in PPO")
    parser.add_argument("--score-steps", type=int, default=0, help="of PPO, between scores; 0 = at its end alone")
    parser.add_argument("--keep-best", action="store_true", help="save what was best in held-out trees")
    parser.add_argument("--most-tokens", type=int, default=16384, help="in one pass, with padding")
    parser.add_argument("--score-episodes", type=int, default=10, help="of each tree, for the ratios")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(given)
    if options.random != (options.config is not None):
        parser.error("--config and --random go together: weights come from --pretrained only")
    return options


def environment_of(options: argparse.Namespace) -> Environment:
    command = [options.environment, *options.data]
    command += ["--held-out", str(options.held_out), "--split-seed", str(options.split_seed)]
    command += ["--longest-prompt", str(options.longest_prompt), "--temperature", str(options.temperature)]
    if options.card:
        command += ["--card", options.card]
    return Environment(command)


def policy_of(options: argparse.Namespace, environment: Environment) -> ActionPolicy:
    reduced = torch.bfloat16 if options.bfloat16 else torch.float32
    # Weights that are trained are kept in float32: small steps are lost in less.
    dtype = reduced if options.lora else torch.float32
    if options.pretrained:
        model, tokeniser = language_model.pretrained(options.pretrained, dtype)
    else:
        trees = environment.training()
        states = visit(environment, trees, CloningOptions(episodes=4, exploring=0.5, seed=options.seed), None, 0)
        texts = {state.prompt for state in states} | {one for state in states for one in state.actions}
        size = language_model.SIZES[options.model]["vocabulary"] if not options.config else 16384
        tokeniser = language_model.train_tokeniser(sorted(texts), size)
        if options.config:
            model = language_model.known_at_random(options.config, tokeniser, dtype)
        else:
            model = language_model.from_scratch(options.model, tokeniser, options.context)
    model.to(options.device)
    if options.activation_checkpointing:
        model.gradient_checkpointing_enable()
        model.train()
    trained = language_model.with_lora(model) if options.lora else model
    policy = ActionPolicy(
        trained,
        tokeniser,
        options.context,
        options.normalization,
        options.bfloat16,
        options.activation_checkpointing,
    )
    parameters = sum(one.numel() for one in policy.model.parameters())
    learning = sum(one.numel() for one in policy.model.parameters() if one.requires_grad)
    print(f"{parameters / 1e6:.1f} million parameters, {learning / 1e6:.1f} of them learn", flush=True)
    return policy


def uniform(states: Sequence[State]) -> list[torch.Tensor]:
    """A policy by chance."""
    return [torch.full((len(state.actions),), -1.0).log_softmax(0) for state in states]


def train(options: argparse.Namespace) -> Records:
    begin = time.monotonic()
    torch.manual_seed(options.seed)
    # cuDNN makes a plan for each new length, and nearly each batch has lengths of its own: on an H100 10 ms a layer,
    # forward and backward, beside 40 ms for all the rest of a pass.
    torch.backends.cuda.enable_cudnn_sdp(False)
    records = Records(options.output)
    with environment_of(options) as environment:
        trees, held_out = environment.training(), environment.held_out()
        augmentation = AugmentationOptions() if options.augment else None
        policy = policy_of(options, environment)

        def score(stage: str, judge_states: Judge) -> None:
            records.score(
                stage,
                ratios(environment, trees, judge_states, options.score_episodes),
                ratios(environment, held_out, judge_states, options.score_episodes),
            )

        best: dict[str, torch.Tensor] = {}
        best_score = -math.inf

        def consider(stage: str) -> None:
            """Scores the policy, and keeps its weights where none were better."""
            nonlocal best_score
            score(stage, judge_of(policy, options.most_tokens))
            last = [one for one in records.scores[-1]["held_out"].values() if one is not None]
            if options.keep_best and sum(last) > best_score:
                best_score = sum(last)
                for name, weights in policy.named_parameters():
                    if weights.requires_grad:
                        best[name] = weights.detach().clone()
                records.kept = stage

        def left() -> float:
            """Seconds; 0 = no limit."""
            return max(options.seconds - (time.monotonic() - begin), 1) if options.seconds > 0 else 0

        def save(stages: str) -> None:
            card = {**environment.card, "normalization": options.normalization, "temperature": 1.0}
            training = {
                "base": options.pretrained or options.config or options.model,
                "lora": options.lora,
                "stages": stages,
                "trees": len(trees),
                "held_out": sorted({tree.task for tree in held_out}),
                "scores": records.scores,
                "kept": records.kept,
            }
            language_model.save(options.output / "model", policy.model, policy.tokeniser, card, training)

        score("chance", uniform)
        score("untrained", judge_of(policy, options.most_tokens))
        stages = options.stages.split(",")
        if "clone" in stages:
            cloning = CloningOptions(
                rounds=options.clone_rounds,
                episodes=options.clone_episodes,
                epochs=options.clone_epochs,
                seconds=left() * (CLONING_PART if "ppo" in stages else 1),
                minibatch=options.clone_minibatch,
                rate=options.clone_rate,
                untried=not options.ignore_untried,
                augmentation=augmentation,
                language=options.language,
                value_rate=options.value_rate,
                most_tokens=options.most_tokens,
                seed=options.seed,
            )
            clone(policy, environment, trees, cloning, records)
            consider("clone")
            save("clone")  # whatever becomes of what follows
        if "ppo" in stages:
            learnt = PpoOptions(
                steps=options.ppo_steps,
                rollout=options.ppo_rollout,
                episodes=options.ppo_episodes,
                seconds=left(),
                epochs=options.ppo_epochs,
                minibatch=options.minibatch,
                rate=options.ppo_rate,
                value_rate=options.value_rate,
                untried=0.0 if options.ignore_untried else PpoOptions.untried,
                augmentation=augmentation,
                score_steps=options.score_steps,
                entropy=options.entropy,
                ratio_tolerance=0.2 if options.bfloat16 else PpoOptions.ratio_tolerance,
                most_tokens=options.most_tokens,
                seed=options.seed,
            )
            Ppo(policy, environment, trees, learnt).train(records, lambda taken: consider(f"ppo {taken}"))
            consider("ppo")
        if policy.cut_prompts > 0:
            print(f"{policy.cut_prompts} prompts were longer than the context and lost their beginning")
        if options.device.startswith("cuda"):
            print(f"at most {torch.cuda.max_memory_allocated() / 1e9:.1f} GB of the card's memory at once")
        if options.keep_best:
            policy.load_state_dict(best, strict=False)
            print(f"kept: {records.kept}")
        save(options.stages)
    return records


if __name__ == "__main__":
    train(arguments())
