"""Random numbers of a part: a function of the run seed and of what they are for, never of a process."""

from __future__ import annotations

import hashlib

import numpy as np


def draws(seed: int, *purpose: object) -> np.random.Generator:
    """A generator of its own for every purpose, e.g. (part, update, prompt).

    >>> int(draws(0, "rlep", 1, "a").integers(1000)) == int(draws(0, "rlep", 1, "a").integers(1000))
    True
    """
    text = "|".join(map(str, (seed, *purpose)))
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
