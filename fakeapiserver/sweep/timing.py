"""The durations of a case."""

from typing import Final

from msgspec import Struct

# Seconds for which an operator may compute without being called restless.
LONGEST_COMPUTATION: Final = 60.0


class Timing(Struct, frozen=True):
    """Real seconds. `quiet`: for which an operator at rest sends nothing. `first_quiet`: the same once it was started again, if its
    right state isn't known: clients slow their first requests down, and a busy machine does so, too. `start`: until it has sent its
    first request. `patience`: until the learnt state must be reached after a step. `calm`: for which an unperturbed run waits after
    each step for an operator that sleeps between two writes, at most `patience` in all. `healing`: the patience with the first state
    that is wrong, if that is longer: many operators look again every half a minute, and put right what they have missed. `activity`:
    while the operator sends requests after a step, the patience begins again, for so long at most."""

    quiet: float = 0.3
    start: float = 30.0
    patience: float = 10.0
    calm: float = 0.0
    healing: float = 0.0
    activity: float = 0.0
    first_quiet: float = 1.0
