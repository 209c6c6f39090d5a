"""Runs cases side by side: each worker has a chain, and a case that shows a symptom in it is tried once more by itself."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.sweep import states
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.clusters import Base
from fakeapiserver.sweep.exploring import arrivals, cases, chain, findings, trial
from fakeapiserver.sweep.exploring.cases import Case
from fakeapiserver.sweep.exploring.chain import Broken, Chain
from fakeapiserver.sweep.exploring.changes import Path
from fakeapiserver.sweep.exploring.comparable import comparable
from fakeapiserver.sweep.exploring.findings import SpecResult, Subjects
from fakeapiserver.sweep.exploring.oracles import Awaited
from fakeapiserver.sweep.exploring.subject import Subject
from fakeapiserver.sweep.exploring.trial import Trial
from fakeapiserver.sweep.judging import Symptom

# A chain is worth its start from so many cases on, and is given up after so many, since its history grows.
_FEWEST: Final = 3
_LONGEST: Final = 60


class Experiment(Struct, frozen=True):
    """The operator and the object that are tried. `patient` is the target with more time for the operator."""

    target: Target
    patient: Target
    subject: Subject
    base: Base
    expected: Awaited


class Workers:
    """The cases that are left, and what is known from those that are done."""

    def __init__(self, experiment: Experiment, left: Sequence[Case], known: Sequence[SpecResult]) -> None:
        self._experiment = experiment
        self._left = [*left]
        self._lock = threading.Lock()
        self._results: queue.SimpleQueue[SpecResult | BaseException | None] = queue.SimpleQueue()
        self._deadline = float("inf")
        # what fields have shown twice
        self._certain: dict[str, Subjects] = {}
        # for each path: the cases whose value arrives in other objects, and those whose values have no effect
        self._following: dict[Path, list[Case]] = {}
        self._without_effect: dict[Path, list[Case]] = {}
        for result in known:
            self._learn(result)

    def results(self, jobs: int, deadline: float) -> Iterator[SpecResult]:
        """The results as they come, `jobs` at a time. No case is begun after the deadline, a time of time.monotonic()."""
        self._deadline = deadline
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(min(jobs, len(self._left)))]
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                running -= 1
            else:
                yield result
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        runs_alone = self._experiment.target.scenario.runs_alone  # a chain has two operators
        try:
            while self._left and time.monotonic() < self._deadline:
                if runs_alone or len(self._left) <= _FEWEST:
                    self._try_alone()
                else:
                    self._try_in_chain()
        except BaseException as error:
            self._results.put(error)
        self._results.put(None)

    def _take(self) -> Case | None:
        """The next case: the first one of a field without a finding, or else the first one. Returns None when nothing is to be begun."""
        with self._lock:
            if not self._left or time.monotonic() >= self._deadline:
                return None
            quiet = (
                number
                for number, each in enumerate(self._left)
                if not any(field in self._certain for field in cases.fields_of(each))
            )
            return self._left.pop(next(quiet, 0))

    def _learn(self, result: SpecResult) -> None:
        for field in result.fields if result.symptoms else ():
            known = self._certain.get(field, Subjects())
            self._certain[field] = known | findings.subjects_of(result.symptoms)

    # ------------------------------------------------------------ a case

    def _try_alone(self) -> None:
        tried = self._take()
        if tried is not None:
            began = time.monotonic()
            try:
                shown = self._isolated(tried, self._experiment.target)
            except Exception:
                self._results.put(self._result(tried, None, began))
                return
            self._results.put(self._result(tried, shown, began))
            self._follow(tried, shown)

    def _try_in_chain(self) -> None:
        """Tries cases in a chain, until one of them breaks it."""
        current: list[tuple[Case, float]] = []

        def work(live: Chain) -> None:
            for _ in range(_LONGEST):
                tried = self._take()
                if tried is None:
                    return
                current[:] = [(tried, time.monotonic())]
                shown = live.try_case(tried, {subject for _, subject in self._known(cases.fields_of(tried))})
                self._results.put(self._result(tried, shown, current[0][1]))
                current.clear()
                self._follow(tried, shown)
                if self._breaks(shown):
                    return
                live.clear()

        experiment = self._experiment
        try:
            chain.play(experiment.target, experiment.subject, experiment.base, experiment.expected, work)
        except Broken:
            return
        except Exception:
            if not current:
                raise
        if current:
            [(tried, began)] = current
            self._results.put(self._result(tried, None, began))

    def _breaks(self, shown: Trial) -> bool:
        """Whether other cases can't go on where this one has ended."""
        seen = [each for each in (shown.created, shown.there, shown.back) if each is not None]
        if shown.back is None or any(each.panics or each.restless for each in seen):
            return True
        return not self._experiment.expected.judge.is_back(shown.back.state)

    def _result(self, tried: Case, shown: Trial | None, began: float) -> SpecResult:
        """The result of a case: symptoms that the field hasn't shown yet must be seen twice."""
        name, fields = cases.id_of(tried), cases.fields_of(tried)
        experiment, judge = self._experiment, self._experiment.expected.judge
        try:
            if shown is None:
                shown = self._isolated(tried, experiment.target)
            symptoms = self._symptoms(shown, tried)
            repeats = True
            if not findings.subjects_of(symptoms) <= self._known(fields):
                again = self._isolated(tried, experiment.patient)
                symptoms, repeats = self._both(symptoms, shown, again, tried)
                shown = again
        except Exception as error:
            text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            return SpecResult(name, fields, [], time.monotonic() - began, error=text)
        refused = [*(shown.created.refused if shown.created is not None else ()), *shown.there.refused]
        result = SpecResult(
            name,
            fields,
            symptoms,
            time.monotonic() - began,
            judge.effects(shown),
            shown.back is not None or not tried,
            repeats,
            refused=[*dict.fromkeys(refused)],
        )
        if symptoms:
            result.comparisons = judge.comparisons(shown, name if tried else "")
            result.timeline = shown.timeline
        with self._lock:
            self._learn(result)
        return result

    def _follow(self, tried: Case, shown: Trial) -> None:
        """Tries a value that has no effect after another one of its field that arrives in other objects."""
        judge = self._experiment.expected.judge
        value = arrivals.value_of(tried)
        if len(tried) != 1 or value is None or shown.created is None or shown.there.refused:
            return
        path = tried[0][0].path
        pairs: list[tuple[Case, Case]] = []
        with self._lock:
            following = self._following.setdefault(path, [])
            without_effect = self._without_effect.setdefault(path, [])
            if arrivals.places(value, judge.learnt, shown.there.state, judge.title):
                following.append(tried)
                pairs += [(tried, other) for other in without_effect] if len(following) == 1 else []
            elif not judge.effects(shown):
                without_effect.append(tried)
                pairs += [(other, tried) for other in following[:1]]
        for first, second in pairs[:1]:
            if time.monotonic() < self._deadline:
                result = self._result((*first, *second), None, time.monotonic())
                result.is_planned = False
                if result.symptoms:
                    self._results.put(result)

    def _isolated(self, tried: Case, target: Target) -> Trial:
        experiment = self._experiment
        return trial.isolated(target, experiment.subject, experiment.base, experiment.expected, tried)

    def _symptoms(self, shown: Trial, tried: Case) -> list[Symptom]:
        judge = self._experiment.expected.judge
        symptoms = judge.symptoms(shown, cases.id_of(tried) if tried else "")
        if not judge.is_reported(shown.there.state):
            ignored = arrivals.ignored(tried, shown, judge.learnt, judge.title)
            symptoms += [Symptom("ignored", about, text) for about, text in ignored]
        return symptoms

    def _both(self, symptoms: list[Symptom], shown: Trial, again: Trial, tried: Case) -> tuple[list[Symptom], bool]:
        """The symptoms that were seen both times, apart from values that differ whenever an object is created."""
        chance = set[tuple[str, str]]()
        if shown.created is not None and again.created is not None:
            by_chance = states.noise_of(comparable(shown.created.state), comparable(again.created.state))
            chance = {
                ("fresh", f"{each.partition(' ')[0]} {each.partition(' ')[2].partition(' ')[2]}") for each in by_chance
            }
        both = findings.subjects_of(symptoms) & findings.subjects_of(self._symptoms(again, tried)) - chance
        certain = [each for each in symptoms if (each.kind, each.subject) in both]
        # a chain doesn't wait for long
        is_impatience = all(kind in ("fresh", "back") for kind, _ in findings.subjects_of(symptoms))
        return certain, bool(certain) or is_impatience

    def _known(self, fields: Sequence[str]) -> Subjects:
        """The symptoms that the fields, or fields within them, have shown twice."""
        with self._lock:
            return Subjects().union(
                *(
                    certain
                    for other, certain in self._certain.items()
                    if any(other == field or findings.is_within(other, field) for field in fields)
                )
            )
