"""How far the median of some sets of processes may be off."""

import random
import statistics


def interval(sets, draws):
    """Between which two values 95 % of the medians lie when sets are drawn again from those that there are."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(sets, k=len(sets))) for _ in range(draws))
    return medians[draws // 40], medians[-draws // 40 - 1]
