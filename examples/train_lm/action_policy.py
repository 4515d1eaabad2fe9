"""A language model as a policy: how likely it finds the text of each action behind a prompt.

A state is one sequence: the prompt once, then all of its actions, each of which sees the prompt and itself
and has the positions it would have right behind the prompt. That is exact, and costs P + m L tokens for m
actions of L tokens instead of m (P + L). Prompts are read first, by plain causal attention, for which there
are fast kernels; the few tokens of the actions then look back at their keys and values by a mask.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from environment import State

# Tokens that cost next to nothing in one pass beside launching its kernels (10 million parameters on an H100:
# 38 ms for 4 states, 41 ms for 16, 67 ms for 64 of 900 tokens). A processor has none.
FREE_TOKENS = 32768

# States whose tokens are remembered: about 5 KB each.
MOST_REMEMBERED = 50000

# The name that all of transformers 5 knows; from 5.24 on it also says that another one is to come.
warnings.filterwarnings("ignore", message=".*past_key_values", category=FutureWarning)


class EncodedState:
    """Token ids of a prompt and of its actions, and where they stand: made once, since a state is judged often.

    Tensors are of the actions' tokens, one action behind the other; owners are the numbers of their actions."""

    def __init__(self, prompt: list[int], actions: list[list[int]]) -> None:
        self.prompt = torch.tensor(prompt)
        self.ids = torch.tensor([token for action in actions for token in action])
        self.counts = torch.tensor([len(action) for action in actions])
        self.owners = torch.tensor([number for number, action in enumerate(actions) for _ in action])
        self.steps = torch.tensor([step for action in actions for step in range(len(action))])  # within its action

    @property
    def actions(self) -> list[list[int]]:
        return [self.ids[self.owners == number].tolist() for number in range(len(self.counts))]

    def tokens(self) -> int:
        return len(self.prompt) + len(self.ids)


@dataclass(frozen=True)
class Packed:
    """Some states, one a row: prompts in the first columns, all of their actions in those behind."""

    ids: Tensor
    positions: Tensor
    parts: Tensor  # 0 is the prompt, 1 and up are the actions, -1 is padding
    prompts: int  # columns

    def sees(self, first: int) -> Tensor:
        """Which tokens, of those from that column on, see which of all."""
        columns = torch.arange(self.ids.shape[1], device=self.ids.device)
        earlier = columns <= columns[first:, None]
        same = self.parts[:, first:, None] == self.parts[:, None, :]
        return (earlier & (same | (self.parts[:, None, :] == 0)))[:, None]


@dataclass
class Judgement:
    """What a policy thinks of some states; columns beyond a state's actions have log-probability -inf."""

    log_probabilities: Tensor  # [states, most actions]
    values: Tensor  # [states]
    surprises: Tensor  # [states]: mean negative log-probability of a token of the state's actions

    def of_first(self, counts: Tensor) -> tuple[Judgement, Tensor]:
        """The same of the first actions of each state alone, and how likely those are together, as logarithms."""
        columns = torch.arange(self.log_probabilities.shape[1], device=counts.device)
        first = self.log_probabilities.masked_fill(columns >= counts[:, None], -torch.inf)
        together = first.logsumexp(1)
        return Judgement(first - together[:, None], self.values, self.surprises), together

    def entropies(self) -> Tensor:
        """Of each state, as part of the largest possible: of log(number of actions)."""
        legal = torch.isfinite(self.log_probabilities)
        finite = self.log_probabilities.masked_fill(~legal, 0.0)
        entropy = -(finite.exp() * finite).masked_fill(~legal, 0.0).sum(1)
        return entropy / legal.sum(1).clamp(min=2).float().log()


class ActionPolicy(nn.Module):
    """Softmax over the legal actions of their texts' log-probabilities (paper, eq. 2), and a value.

    The value is a small network on the last hidden state of the prompt, which gives the model no gradient:
    actor and critic learn apart.
    """

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        tokeniser: PreTrainedTokenizerBase,
        context: int,
        normalization: str = "sum",
        reduced: bool = False,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        if normalization not in ("sum", "token_mean"):
            raise ValueError(f"a score can be a sum or a token_mean, not {normalization}")
        self.model = model
        self.tokeniser = tokeniser
        self.context = context
        self.normalization = normalization
        self.reduced = reduced  # compute in bfloat16, whatever the weights are in
        self.checkpointing = checkpointing  # the model computes activations twice, and keeps no keys and values
        self.cut_prompts = 0  # prompts that lost their beginning, since they were longer than the context
        width = model.config.hidden_size
        last = nn.Linear(256, 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.critic = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), last).to(model.device)
        self._encoded: dict[tuple[str, tuple[str, ...]], EncodedState] = {}

    @property
    def base(self) -> PreTrainedModel:
        """The model without what LoRA puts around it; adapters stay in place."""
        return cast(PreTrainedModel, self.model.get_base_model() if isinstance(self.model, PeftModel) else self.model)

    def encode(self, state: State) -> EncodedState:
        """Tokens of prompt and action together, as a server sees them. Where an action changes the prompt's
        last tokens, those count as its own."""
        key = (state.prompt, state.actions)
        if key in self._encoded:
            return self._encoded[key]
        whole, pairs = self._tokens(state)
        shared = len(whole)
        for pair in pairs:
            while pair[:shared] != pairs[0][:shared] or len(pair) <= shared:
                shared -= 1
        prompt = pairs[0][:shared]
        actions = [pair[shared:] for pair in pairs]
        room = self.context - max(len(action) for action in actions)
        if len(prompt) > room:
            self.cut_prompts += 1
            prompt = prompt[-room:]
        encoded = EncodedState(prompt, actions)
        if len(self._encoded) >= MOST_REMEMBERED:
            self._encoded.clear()
        self._encoded[key] = encoded
        return encoded

    def _tokens(self, state: State) -> tuple[list[int], list[list[int]]]:
        """Tokens of the prompt, and of the prompt with each action. What precedes the prompt's last paragraph is
        the same in all, and is read once where the tokeniser does not join tokens across that place."""
        cut = max(state.prompt.rfind("\n\n"), 0)
        head, tail = state.prompt[:cut], state.prompt[cut:]
        last_line = head[head.rfind("\n") + 1 :]
        ends = [tail, *(tail + action for action in state.actions)]
        of_ends = self._ids(ends)
        if self._ids([last_line + tail])[0] == self._ids([last_line])[0] + of_ends[0]:
            begin = self.tokeniser(head)["input_ids"]
            of_all = [begin + one for one in of_ends]
        else:
            of_all = list(self.tokeniser([head + one for one in ends])["input_ids"])
        return of_all[0], of_all[1:]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of texts, without what a tokeniser puts before and behind."""
        return list(self.tokeniser(list(texts), add_special_tokens=False)["input_ids"])

    def forward(self, states: Sequence[State]) -> Judgement:
        """Judges states that have not ended."""
        encoded = [self.encode(state) for state in states]
        packed = self._packed(encoded)
        device = packed.ids.device
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.reduced):
            hidden = self._hidden(packed)

        # The first token of an action follows the prompt's last one, each other one its predecessor.
        sources = torch.cat(
            [
                torch.where(one.steps == 0, len(one.prompt) - 1, packed.prompts - 1 + torch.arange(len(one.ids)))
                for one in encoded
            ]
        )
        rows = torch.cat([torch.full((len(one.ids),), row) for row, one in enumerate(encoded)])
        targets = torch.cat([one.ids for one in encoded]).to(device)
        counts = torch.cat([one.counts for one in encoded])
        first_actions = torch.tensor([0, *(len(one.counts) for one in encoded)]).cumsum(0).tolist()
        owners = torch.cat([one.owners + begin for one, begin in zip(encoded, first_actions)]).to(device)
        needed = hidden[rows.to(device), sources.to(device)]
        head = self.base.get_output_embeddings()
        logits = head(needed.to(head.weight.dtype)).float()
        of_tokens = -nn.functional.cross_entropy(logits, targets, reduction="none")
        scores = torch.zeros(len(counts), device=device).index_add(0, owners, of_tokens)
        means = scores / counts.to(device)
        if self.normalization == "token_mean":
            scores = means

        actions = torch.tensor([len(one.counts) for one in encoded])
        of_states = torch.tensor([row for row, one in enumerate(encoded) for _ in one.counts])
        columns = torch.cat([torch.arange(int(count)) for count in actions])
        table = torch.full((len(encoded), int(actions.max())), -torch.inf, device=device)
        table = table.index_put((of_states.to(device), columns.to(device)), scores)
        surprises = torch.zeros(len(encoded), device=device).index_add(0, of_states.to(device), -means)
        surprises = surprises / actions.to(device)
        ends = torch.tensor([len(one.prompt) - 1 for one in encoded], device=device)
        last_hidden = hidden[torch.arange(len(encoded), device=device), ends].detach().float()
        return Judgement(table.log_softmax(1), self.critic(last_hidden).squeeze(1), surprises)

    def _hidden(self, packed: Packed) -> Tensor:
        """What the model makes of each token."""
        backbone, prompts = self.base.get_decoder(), packed.prompts
        if self.checkpointing:
            return backbone(
                input_ids=packed.ids, attention_mask=packed.sees(0), position_ids=packed.positions, use_cache=False
            ).last_hidden_state
        read = DynamicCache()
        of_prompts = backbone(input_ids=packed.ids[:, :prompts], past_key_values=read, use_cache=True)
        of_actions = backbone(
            input_ids=packed.ids[:, prompts:],
            attention_mask=packed.sees(prompts),
            position_ids=packed.positions[:, prompts:],
            past_key_values=read,
            use_cache=True,
        )
        return torch.cat([of_prompts.last_hidden_state, of_actions.last_hidden_state], 1)

    def _packed(self, encoded: Sequence[EncodedState]) -> Packed:
        prompts = max(len(one.prompt) for one in encoded)
        width = prompts + max(one.tokens() - len(one.prompt) for one in encoded)
        ids = torch.full((len(encoded), width), self.tokeniser.pad_token_id or 0)
        positions = torch.zeros((len(encoded), width), dtype=torch.long)
        parts = torch.full((len(encoded), width), -1)
        positions[:, :prompts] = torch.arange(prompts)
        for row, one in enumerate(encoded):
            end, behind = len(one.prompt), prompts + len(one.ids)
            ids[row, :end] = one.prompt
            parts[row, :end] = 0
            ids[row, prompts:behind] = one.ids
            positions[row, prompts:behind] = end + one.steps
            parts[row, prompts:behind] = 1 + one.owners
        device = self.base.device
        return Packed(ids.to(device), positions.to(device), parts.to(device), prompts)


def batches(states: Sequence[State], policy: ActionPolicy, most_tokens: int) -> list[list[int]]:
    """Numbers of states in groups of about one length, each of at most that many tokens with its padding
    (but of one state at least). The longest of a group has at most half as many again as the shortest, but where
    tokens are free."""
    lengths = [policy.encode(state).tokens() for state in states]
    free_tokens = FREE_TOKENS if policy.base.device.type == "cuda" else 0
    groups: list[list[int]] = []
    for i in sorted(range(len(states)), key=lengths.__getitem__):
        tokens = lengths[i] * (len(groups[-1]) + 1) if groups else 0
        alike = groups and (2 * lengths[i] <= 3 * lengths[groups[-1][0]] or tokens <= free_tokens)
        if alike and tokens <= most_tokens:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


@torch.no_grad()
def judge(policy: ActionPolicy, states: Sequence[State], most_tokens: int) -> list[tuple[Tensor, float]]:
    """Log-probabilities and value of each state, without gradients. Equal states are judged once."""
    distinct = {(state.prompt, state.actions): state for state in states}
    keys = list(distinct)
    found: dict[tuple[str, tuple[str, ...]], tuple[Tensor, float]] = {}
    for group in batches(list(distinct.values()), policy, most_tokens):
        seen = policy([distinct[keys[i]] for i in group])
        for row, i in enumerate(group):
            count = len(distinct[keys[i]].actions)
            found[keys[i]] = (seen.log_probabilities[row, :count].cpu(), float(seen.values[row]))
    return [found[(state.prompt, state.actions)] for state in states]
