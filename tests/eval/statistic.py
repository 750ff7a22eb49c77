"""The few statistics that the evaluation needs."""
import math
import random


def recovered(arm, repo, oracle):
    """How much of the way from the repository alone to all that could be known an arm goes; None if there is no way."""
    return None if None in (arm, repo, oracle) or oracle == repo else (arm - repo) / (oracle - repo)


def share(right):
    right = list(right)
    return sum(right) / len(right) if right else None


def bootstrap(samples, statistic, rounds=2000, level=0.95, seed=1):
    """The interval of a statistic over samples that are drawn again and again; None where there are not two of them."""
    samples = list(samples)
    if len(samples) < 2:
        return None
    chance = random.Random(seed)
    values = []
    for _ in range(rounds):
        value = statistic([samples[chance.randrange(len(samples))] for _ in samples])
        if value is not None:
            values.append(value)
    if not values:
        return None
    values.sort()
    cut = (1 - level) / 2
    return [values[int(cut * (len(values) - 1))], values[int(round((1 - cut) * (len(values) - 1)))]]


def mcnemar(pairs):
    """The exact two-sided p value of McNemar's test, of pairs (right in one, right in the other); None if they never differ."""
    only_one = sum(1 for one, other in pairs if one and not other)
    only_other = sum(1 for one, other in pairs if other and not one)
    count = only_one + only_other
    if not count:
        return None
    tail = sum(math.comb(count, k) for k in range(min(only_one, only_other) + 1)) / 2 ** count
    return min(1.0, 2 * tail)


def cost(tokens, prices):
    """What tokens cost, by a table of US dollars for a million of them."""
    return sum(tokens.get(name, 0) * price / 1e6 for name, price in prices.items() if name in ("input", "output", "cached", "written"))
