#pragma once
/// What judges the plan of a candidate against that of a problem, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// judging.py, which zygote.py imports.
inline constexpr std::string_view judging_text =
    R"python("""Judges a candidate's plan: inputs, truth and comparison here, each contestant in a process of its own.

The problem's plan is done in its own precision, which shows how much honest arithmetic errs, and in double precision,
which is the truth. No content is shown twice."""
import os
import random
import statistics
import time

import torch

import contestant
import sandbox
from cases import Case, Seen
from comparing import Comparison, refuse_result
from measuring import Groups, Measure, chunks, is_floating, largest_error, scale_of, sums_of, usual_error
from players import Lost, Player
from replaying import Refused, constant_parameters, input_tensors, storages_of
from sharing import DeviceBuffers, HostBuffers, dense

POISONS = (0x7F, 0xFF, 0x00, 0x40)
MOST_LEARNT = 4 << 30  # bytes of results of which it is learnt how those of another process err
NO_NUMBER = "no result is a number"
ALL_ZERO = "the result is zero whatever the inputs are"
SAME_RESULT = "the result is the same for all inputs"
FAR_FROM_TRUTH = "PyTorch's own results are mostly far from the truth, so that nearly anything passes"
SAME_INPUTS = "its inputs are always the same, so that all can be computed beforehand"
WARM = 5  # calls before any is timed


# After so many pairs one may look: the interval from the so-manieth smallest to the so-manieth largest ratio.
LOOKS = {7: 1, 14: 3}
OVERWHELMING = 1.5
PATIENCE = 3  # times as long as pairs are timed, again, where something disturbs single ones


def is_clear(ratios):
    """Whether more pairs of times would tell nothing that matters."""
    if len(ratios) == 3 and (min(ratios) > OVERWHELMING or max(ratios) < 1 / OVERWHELMING):
        return True
    if len(ratios) not in LOOKS:
        return False
    rank = LOOKS[len(ratios)]
    low, high = sorted(ratios)[rank - 1], sorted(ratios)[-rank]
    return low > 1 or high < 1 or high - low < 0.02


def is_disturbed(ratios):
    """Whether a few pairs are far from what most agree on, so that more of them would tell."""
    ordered = sorted(ratios)
    quarter = len(ordered) // 4
    agreed = ordered[-1 - quarter] / ordered[quarter]
    return ordered[-1] / ordered[0] > 1.05 * agreed ** 2


class Judgement:
    """One candidate against one incumbent."""

    def __init__(self, request, players, buffers, device):
        self.request = request
        self.problem = request["problem"]
        self.players = players
        self.buffers = buffers
        self.device = device
        self.keys = iter(range(request["key"], request["key"] + 1000000))
        self.measure = Measure(len(self.problem["outputs"]))
        self.comparison = Comparison(self.measure)
        self.writes_inputs = False
        self.result = {}
        self.seen = None
        self.random = random.Random(f"{request['key']} poison")
        self.poisoned = self.zone_byte = None
        self.unseen = []
        self.goes_on = False  # what a call leaves behind is to matter in the next one
        self.any_order = False  # the problem's own bits differ from call to call
        self.spent = {}
        self.stage, self.since = "start", time.monotonic()

    def run(self):
        request = self.request
        self.begin()
        self.passed("check")
        timed = request["seconds"] > 0
        # Of the calls that are timed one is compared with the truth, too, and one behind them all.
        later = 1 if timed and "candidate" not in request["problems"] else 0
        for number in range(max(1, request["cases"] - later)):
            case = self.case(with_truth=True) if number == 0 else self.case_of_later_call()
            self.ask_problem(case, number)
            self.measure.learn(case)
            self.writes_inputs = self.writes_inputs or case.writes_inputs
            if number == 0:
                self.choose(case)
            self.check(case, number)
            self.look_for_flaws(case)
            case = None  # before the next one is made
        candidate, longest = self.players["candidate"], request["call_seconds"]
        self.result["library_share"] = candidate.ask(
            {"do": "share", "poison": POISONS[0]}, 4 * longest, "timing its steps")["library_share"]
        self.passed("time")
        if timed:
            self.time()
        if self.flaws:
            self.result["flaw"] = self.flaws[0]
        self.result["problem_error"] = min(self.measure.plain, 1e300)
        self.result["problem_far"] = sum(self.measure.far)
        self.result["memory_bytes"] = candidate.memory + sum(content.numel() for content in self.buffers.raw["inputs"])
        return self.verdict("correct", "", "", "")

    def passed(self, stage):
        """From here on seconds are those of another stage."""
        now = time.monotonic()
        self.spent[self.stage] = self.spent.get(self.stage, 0.0) + now - self.since
        self.stage, self.since = stage, now

    def ask_problem(self, case, number):
        """What the problem gives where it is called like a candidate is honest, too: libraries have several ways to
        compute one thing, of which some add in no fixed order."""
        for name, player in self.players.items():
            if name not in self.request["problems"] or sum(own.nbytes for own in case.own) > MOST_LEARNT:
                continue
            before = None
            player.set_up(case.state_key, self.request["start_seconds"])
            for again in range(2 if number == 0 else 1):
                self.show(case)
                self.poison_outputs(POISONS[again])
                player.call(POISONS[again + 1], self.request["call_seconds"])
                sums = sums_of(self.buffers.outputs())
                self.any_order = self.any_order or before not in (None, sums)
                before = sums
            case.add(self.buffers.outputs())
            self.measure.look_at(case, self.buffers.outputs())
            player.rest(self.request["start_seconds"])

    def check(self, case, number):
        """Compares a candidate's call with the truth; in the first case two calls with each other, too. In a later one it is
        as earlier calls have left it."""
        if "candidate" in self.request["problems"]:
            self.players["candidate"].set_up(case.key, self.request["start_seconds"])
            self.show(case)
            return  # the problem itself is what is right
        request, candidate = self.request, self.players["candidate"]
        first = case.state_key == case.key
        if first:
            candidate.set_up(case.key, request["start_seconds"])
        before = None
        for _ in range(2 if number == 0 else 1):
            self.show(case)
            self.poison_outputs(self.poison())
            try:
                for _ in range(0 if first else self.calls_between(candidate)):
                    candidate.call(self.poison(), request["call_seconds"], renewed=False)
                if self.writes_inputs:
                    self.show(case)
                candidate.call(self.poison_of_check(), request["call_seconds"], True, first)
                self.compare(case, case.truth, 1.0)
            except Lost as lost:
                raise lost if first else Lost(lost.verdict, f"in a later call {lost}", lost.remedy)
            self.demand_inputs(case)
            sums = sums_of(self.buffers.outputs())
            if before not in (None, sums) and not request["atomics"] and not self.any_order:
                raise Lost("nondeterministic", "two calls on the same inputs give other bits")
            before = sums

    def begin(self):
        """Waits until all processes are ready. Of several configurations some may need more than the device has."""
        lost = None
        for name, player in list(self.players.items()):
            try:
                player.hear(self.request["start_seconds"], "making it")
            except Lost as error:
                if name == "incumbent":
                    raise
                lost = error
                self.players.pop(name).end()
        if not self.candidates():
            raise lost

    def rest(self, but=None):
        for player in self.players.values():
            if player is not but:
                player.rest(self.request["start_seconds"])

    def candidates(self):
        """By their names: "candidate", and where there are several configurations "candidate 1" and so on."""
        return {name: player for name, player in self.players.items() if name != "incumbent"}

    def choose(self, case):
        """Of several configurations the fastest that is right becomes the candidate."""
        candidates = self.candidates()
        times, lost = {}, None
        for name, player in candidates.items() if len(candidates) > 1 else ():
            try:
                self.poison_outputs(POISONS[0])
                player.set_up(case.key, self.request["start_seconds"])
                self.show(case)
                calls = [player.call(POISONS[1], self.request["call_seconds"]) for _ in range(4)]
                self.compare(case, case.truth, 1.0)
                times[name] = statistics.median(calls[1:])
                player.rest(self.request["start_seconds"])
            except Lost as error:
                lost = error
                self.players.pop(name).end()
        if lost and not times:
            raise lost
        best = min(times, key=times.get) if times else next(iter(candidates))
        self.result["chosen"] = int(best[len("candidate"):] or 0)
        for name in candidates:
            if name != best and name in self.players:
                self.players.pop(name).end()
        self.players["candidate"] = self.players.pop(best)

    def case(self, with_truth):
        if with_truth:
            self.rest()
        case = Case(self.request, self.device, next(self.keys), with_truth)
        self.goes_on = self.goes_on or with_truth and case.goes_on
        return case

    def case_of_later_call(self):
        """New inputs for the candidate as the last call has left it; where that is to matter, or memory is short, one with
        weights of its own."""
        candidate = self.players["candidate"]
        large = sum(content.numel() for content in self.buffers.raw["outputs"]) > MOST_LEARNT
        if self.goes_on or large or candidate.key is None:
            return self.case(with_truth=True)
        self.rest(but=candidate)
        return Case(self.request, self.device, next(self.keys), True, candidate.key)

    def calls_between(self, candidate):
        """How many calls nobody looks at come before one that is, for whoever counts them; fewer of what takes long."""
        return self.random.randrange(int(max(1, min(12, 0.05 / max(candidate.seconds, 1e-6)))))

    def poison(self):
        """Another byte than the last one; which, nobody knows."""
        self.poisoned = self.random.choice([byte for byte in POISONS if byte != self.poisoned])
        return self.poisoned

    def poison_of_check(self):
        """For calls that are looked at closely: each byte in turn, so that whoever minds one of them is found out. The
        first two differ in every bit that a number may end with."""
        if not self.unseen:
            odd, even = [[byte for byte in POISONS if byte % 2 == rest] for rest in (1, 0)]
            self.random.shuffle(odd)
            self.random.shuffle(even)
            self.unseen = [byte for pair in zip(odd, even) for byte in pair]
        self.poisoned = self.unseen.pop()
        return self.poisoned

    def show(self, case):
        case.show(self.buffers.inputs())
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def demand_inputs(self, case):
        """A problem that writes to its inputs may have candidates that do."""
        if not self.writes_inputs and sums_of(self.buffers.inputs()) != case.sums:
            raise Lost("input_modified", "it writes to its inputs")
        if self.buffers.zones_changed(self.zone_byte):
            raise Lost("out_of_bounds", "it writes outside of its inputs")

    def poison_outputs(self, byte):
        for content in self.buffers.raw["outputs"]:
            content.fill_(byte)
        self.zone_byte = byte
        self.buffers.fill_zones(byte)
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def compare(self, case, truth, factor):
        self.comparison.compare(self.buffers.outputs(), case, truth, factor)

    def look_for_flaws(self, case):
        """Why right results tell little."""
        floats = [truth for truth in case.truth if is_floating(truth)]
        seen, self.seen = self.seen, Seen(case, self.seen)
        found = {
            NO_NUMBER: len(floats) == len(case.truth) and not any(bool(torch.isfinite(one).any()) for one in floats),
            ALL_ZERO: not any(bool(truth.any()) for truth in case.truth),
            FAR_FROM_TRUTH: self.measure.is_far(case.truth),
            SAME_RESULT: seen is None or self.is_same(seen, case),
            SAME_INPUTS: seen is None or seen.sums == case.sums}
        self.flaws = [flaw for flaw in found if found[flaw] and (seen is None or flaw in self.flaws)]

    def is_same(self, seen, case):
        """Whether the result of one case would do for the other."""
        for i, (truth, some, other) in enumerate(zip(case.truth, self.seen.results, seen.results)):
            if not is_floating(truth):
                if not torch.equal(some, other):
                    return False
            elif largest_error(other, some, self.measure.scale(i, case))[0] > self.measure.allowed(i, case.own[i].dtype):
                return False
        return True

    def time(self):
        """Pairs of calls on inputs that neither has seen, in turn, every result compared."""
        request = self.request
        until, patience = time.monotonic() + request["seconds"], PATIENCE * request["seconds"]
        names = [name for name in ("incumbent", "candidate") if name in self.players]
        times = {name: [] for name in names}
        looked_at = self.random.choice((0, 2))  # of the first pairs, which there are in any case, the incumbent first
        for number in range(request["most_pairs"]):
            begin = time.monotonic()
            case = None  # before the next one is made
            case = self.case(with_truth=number == looked_at)
            for name in names if number % 2 == 0 else reversed(names):
                player = self.players[name]
                player.set_up(case.key, request["start_seconds"])
                self.show(case)
                if number == 0:
                    for _ in range(WARM):  # the first of a process are slower, and the candidate has had some
                        player.call(self.poison(), request["call_seconds"])
                    self.show(case)
                self.poison_outputs(self.poison())
                closely = number == looked_at and name == "candidate"
                poison = self.poison_of_check() if closely else self.poison()
                times[name].append(player.call(poison, request["call_seconds"], closely))
                if number == looked_at:
                    self.look_again(name, case)
                elif name == "candidate" and name not in request["problems"]:
                    # The problem's own arithmetic errs, too.
                    self.compare(case, case.own, 2.0)
                    self.demand_inputs(case)
            done = number + 1
            ratios = [a / b for a, b in zip(times.get("incumbent", ()), times["candidate"])]
            if ratios and not request["promote"] and is_clear(ratios):
                break
            if done >= request["least_pairs"] and time.monotonic() + (time.monotonic() - begin) > until:
                if not ratios or not is_disturbed(ratios) or patience <= 0:
                    break
                until, patience = time.monotonic() + patience, 0
        self.result["times"] = times
        if "candidate" not in request["problems"]:
            case = None  # before the next one is made
            self.check(self.case_of_later_call(), 1)

    def look_again(self, name, case):
        """At a call that was timed, as closely as at those before."""
        if name in self.request["problems"] and sum(own.nbytes for own in case.own) <= MOST_LEARNT:
            case.add(self.buffers.outputs())
        if name == "candidate" and name not in self.request["problems"]:
            self.measure.learn(case)
            self.compare(case, case.truth, 1.0)
            self.demand_inputs(case)
            self.look_for_flaws(case)

    def verdict(self, verdict, rule, message, remedy):
        """The answer."""
        self.passed("")
        return {"verdict": verdict, "rule": rule, "message": message, "remedy": remedy, "checked": self.comparison.checked,
                "largest_error": min(self.comparison.largest, 1e300), "spent": self.spent, **self.result}


class ReproducibleJudgement(Judgement):
    """Of what has kernels itself, so that nobody else can say what is right: two processes give the same."""

    def run(self):
        request = self.request
        self.begin()
        first, second = self.players["candidate"], self.players["incumbent"]
        for number in range(request["cases"]):
            key, poison, other = next(self.keys), POISONS[number], POISONS[number + 1]
            given, again = self.results(first, key, poison), self.results(second, key, other)
            try:
                self.agree(given, again, other)
            except Lost as difference:
                self.explain(difference, first, key, again, other)
        times = [first.call(POISONS[0], request["call_seconds"]) for _ in range(request["least_pairs"] + 1)]
        self.result["times"] = {"candidate": times[1:]}
        self.result["library_share"] = first.ask(
            {"do": "share", "poison": POISONS[0]}, 4 * request["call_seconds"], "timing its steps")["library_share"]
        return self.verdict("correct", "", "", "")

    def results(self, player, key, poison):
        player.set_up(key, self.request["start_seconds"])
        self.poison_outputs(poison)
        player.call(poison, self.request["call_seconds"])
        return [tensor.clone() for tensor in self.buffers.outputs()]

    def explain(self, difference, player, key, again, poison):
        """Of a script that is held against itself: why two calls differ."""
        contestants = self.request["contestants"]
        if contestants["candidate"]["plan"] != contestants["incumbent"]["plan"]:
            raise difference
        try:
            self.agree(self.results(player, key, poison), again, poison)
        except Lost as race:
            raise Lost("nondeterministic", f"two calls on the same inputs differ: {race}")
        raise Lost("nondeterministic", f"what it gives depends on memory that nothing has written: {difference}")

    def agree(self, given, again, poison):
        """What nothing has written is not compared."""
        for i, (one, other) in enumerate(zip(given, again)):
            unwritten = holds(other, poison)
            one = torch.where(unwritten, other, one)
            self.comparison.checked += one.numel() - int(unwritten.sum().item())
            if not is_floating(one):
                if not torch.equal(one, other):
                    place = int((one != other).reshape(-1).nonzero()[0].item())
                    refuse_result(i, place, one, other, "wrong_result", 0)
                continue
            scale = scale_of(other)
            error, place = largest_error(one, other, scale)
            bound = max(self.request["tolerance"], self.measure.least(one.dtype))
            self.comparison.largest = max(self.comparison.largest, error / bound)
            if error > bound:
                refuse_result(i, place, one, other, "wrong_result", error / bound)


def holds(tensor, byte):
    """Which elements consist of nothing but that byte."""
    content = tensor.reshape(-1).view(torch.uint8).view(-1, tensor.element_size())
    return (content == byte).all(dim=1).view(tensor.shape)


class CompatibleJudgement(Judgement):
    """By a benchmark's own rules: results near the problem's own, which are not the truth, and the mean of many calls
    on the same inputs."""

    WARM = 3

    def compare(self, case, truth, factor):
        self.near(case)

    def run(self):
        request = self.request
        self.begin()
        self.choose(self.case(with_truth=False))
        candidate = self.players["candidate"]
        for _ in range(request["cases"]):
            case = None  # before the next one is made
            case = self.case(with_truth=False)
            candidate.set_up(case.key, request["start_seconds"])
            self.show(case)
            self.poison_outputs(POISONS[0])
            candidate.call(POISONS[0], request["call_seconds"])
            self.near(case)
        times = {}
        for name, player in self.players.items():
            player.set_up(case.key, request["start_seconds"])
            self.show(case)
            calls = [player.call(POISONS[0], request["call_seconds"]) for _ in range(request["least_pairs"] + self.WARM)]
            times[name] = calls[self.WARM:]
            if name == "candidate":
                self.near(case)  # the last of them, too
        self.result["times"] = times
        return self.verdict("correct", "", "", "")

    def near(self, case):
        bound = self.request["tolerance"]
        for i, (given, own) in enumerate(zip(self.buffers.outputs(), case.own)):
            self.comparison.checked += given.numel()
            for begin, (one, right) in chunks(given, own):
                far = ~torch.isclose(one, right, rtol=bound, atol=bound) if is_floating(one) else one != right
                if bool(far.any()):
                    refuse_result(i, begin + int(far.nonzero()[0].item()), given, own, "wrong_result", 0)


def contestants_of(request):
    """By their names, with what each has to know."""
    problem = request["problem"]
    own = {storage for phase in ("inputs", "setup") for step in problem["phases"].get(phase, ())
           for storage in storages_of(step)} | {view["storage"] for view in input_tensors(problem)}
    results = [{"strides": view["strides"], "own": view["storage"] not in own} for view in problem["outputs"]]
    return {name: {**one, "device": request["device"], "results": results, "first_key": request["first_key"],
                   "varied": request["varied"]} for name, one in request["contestants"].items()}


def buffers_of(request):
    problem = request["problem"]
    inputs = [{**view, "offset": 0} for view in input_tensors(problem)]
    kind = HostBuffers if request["device"] == "cpu" else DeviceBuffers
    return kind(inputs, [dense(view) for view in problem["outputs"]])


JUDGEMENTS = {"strict": Judgement, "compatible": CompatibleJudgement, "reproducible": ReproducibleJudgement}
RULES = {"low_precision": ("precision", "Compute in the precision of the problem, and add up in f32; "
                                        "say input_precision=\"ieee\" where tl.dot multiplies f32"),
         "wrong_result": ("reference", "Compute what the problem's forward computes"),
         "timeout": ("launch_deadline", "Do less work, or end the loop"),
         "crashed": ("crash", "Stay inside of the tensors: check masks and offsets"),
         "launch_error": ("launch", "Ask for no more shared memory, registers and threads than the device has"),
         "nondeterministic": ("same_bits", "Add in a fixed order; do not read memory that nothing has written"),
         "out_of_bounds": ("red_zones", "Stay inside of the tensors: check masks and offsets"),
         "input_modified": ("inputs_unchanged", "Write results to tensors of your own")}


def answer(request, folder):
    device = torch.device(request["device"])
    torch.set_num_threads(max(1, os.cpu_count() or 1)) if device.type == "cpu" else None
    request["first_key"] = request["key"]
    plans = [request["problem"], *(one["plan"] for one in request["contestants"].values())]
    names = [set(constant_parameters(plan)) for plan in plans] if request["rules"] == "strict" else [set()]
    request["varied"] = sorted(set.intersection(*names))  # what only some of them have cannot be varied alike
    players = dict(zip(request["contestants"], table.players))
    judgement = JUDGEMENTS[request["rules"]](request, players, table.buffers, device)
    if device.type == "cuda":
        table.buffers.make()
    for name, one in contestants_of(request).items():
        players[name].begin(name, one, table.buffers, folder)
    try:
        return judgement.run()
    except Lost as lost:
        if lost.who == "incumbent" and request["rules"] != "reproducible":
            raise Refused(f"what it is timed against cannot be called: {lost}")
        rule, remedy = RULES[lost.verdict]
        return judgement.verdict(lost.verdict, rule, str(lost), lost.remedy or remedy)


class Table:
    """Where processes of contestants wait, parted while nothing kept the judge from it and no device was in use."""

    def __init__(self, buffers, players):
        self.buffers, self.players = buffers, players


table = None


def lay_out(request, folder, ready=()):
    global table
    wanted = len(request["contestants"])
    if request["device"] != "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = request["visible"]
        ready = ready or [Player(None, sandbox.tie) for _ in range(wanted)]
        for player in ready[wanted:]:
            player.end()
        table = Table(buffers_of(request), ready[:wanted])
        return
    limits, buffers = request["limits"], buffers_of(request)

    def walls():
        sandbox.enter(folder, limits["memory_bytes"], limits["seconds"], 16 << 20, contestant_walls)

    table = Table(buffers, [Player(buffers, walls) for _ in range(wanted)])


def stand_by(device, processes):
    """Uses the device for the first time, as a judge and two contestants do, before there is a question."""
    os.environ["CUDA_VISIBLE_DEVICES"] = device
    ready = [Player(None, sandbox.tie) for _ in range(processes)]
    for player in ready[:2]:
        player.channel.say({"do": "warm"})
    try:
        warm()
    except Exception:
        pass  # a question will find the same, and says so
    return ready


def warm():
    contestant.warm()
    square = torch.rand(64, 64, device="cuda")
    for own in (square, square.half()):
        truth = own.double()
        truth @ truth
        usual_error(own, truth, scale_of(truth))
        largest_error(own, truth, 1.0)
        Groups(own, own, truth).worst(1.0, 1.0)
        sums_of([own])


class contestant_walls:
    threads = True
    programs = staticmethod(lambda: ())


def needs_device(request):
    return request["device"] != "cpu"


threads = True


def programs():
    return ()


def versions():
    return {"torch": torch.__version__}


def prepare():
    torch.zeros(4).sum()


def failure(error):
    if isinstance(error, Refused):
        return {"kind": "refused", "message": str(error)[:4000], "line": 0}
    if contestant.lacks_memory(error):
        return {"kind": "refused", "message": contestant.NO_MEMORY + contestant.place_of(error), "line": 0}
    return {"kind": type(error).__name__, "message": str(error)[:4000] + contestant.place_of(error), "line": 0}
)python";

} // namespace mtmc::detail
