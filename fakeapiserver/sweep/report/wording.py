"""Says in plain words what a perturbation does to the operator."""

from fakeapiserver.sweep.perturbation import Perturbation


def of(perturbation: Perturbation) -> str:
    """A sentence or two for people who don't know the names of perturbations."""
    words = {
        "crash": _crash,
        "away": _away,
        "refuse": _refuse,
        "conflict": _conflict,
        "slow": _slow,
        "stale": _stale,
        "restart": _restart,
        "unobserved": _unobserved,
        "reordered": _reordered,
        "late": _late,
        "lease": _lease,
        "webhook": _webhook,
        "clock": _clock,
    }.get(perturbation.kind)
    return words(perturbation) if words is not None else f"The surprise: {perturbation.id}."


def _crash(each: Perturbation) -> str:
    if each.when == "before":
        return f"The operator was killed before the API server stored its write ({each.point}), and was started again."
    return f"The operator was killed when the API server had stored its write ({each.point}), and was started again."


def _away(each: Perturbation) -> str:
    return (
        f"The operator was killed when the API server had stored its write ({each.point}), and was started again after the user had "
        f"done the next thing, step {each.until + 1}."
    )


def _refuse(each: Perturbation) -> str:
    answer = f"status {each.status}" if each.status else "a reset connection"
    if each.when == "after":
        return f"The API server stored a write ({each.point}), but the operator got {answer} as the answer."
    return f"The API server did not store a write ({each.point}): the operator got {answer} as the answer."


def _conflict(each: Perturbation) -> str:
    return f"Another writer changed the object right before the operator's write ({each.point}) arrived."


def _slow(each: Perturbation) -> str:
    write = (
        f"its write ({each.point})" if each.point is not None else f"a change of {each.object} that was being deleted"
    )
    return (
        f"The operator was slow: it got the answer to {write} only when the garbage collector and all other controllers had done what "
        "followed from the write."
    )


def _stale(each: Perturbation) -> str:
    view = f"before a write ({each.point})" if each.point is not None else f"after step {each.step + 1}"
    view += f" of {each.resource}" if each.resource else ""
    return (
        f"After step {each.until + 1} the operator was started again, and read from an API server that lagged behind: it still had the "
        f"state {view}. Then that server caught up."
    )


def _restart(each: Perturbation) -> str:
    return f"The API server was restarted when the operator sent a write ({each.point}), and forgot its history: watches had to list again."


def _unobserved(each: Perturbation) -> str:
    return f"The operator never saw some states of an object, as after a watch that broke off ({each.id}): it saw only the next one."


def _reordered(each: Perturbation) -> str:
    return f"The events of {each.resource} reached the operator after those of all other resources ({each.id})."


def _late(each: Perturbation) -> str:
    return f"The events of {each.resource} reached the operator late ({each.id}), so that its cache lagged behind its own writes."


def _lease(each: Perturbation) -> str:
    return f"Another candidate took the operator's lease in step {each.step + 1}."


def _webhook(each: Perturbation) -> str:
    return f"An admission webhook could not be reached for a while ({each.id})."


def _clock(each: Perturbation) -> str:
    return "In each step, pods became ready only after 15 minutes, by the clock of the API server."
