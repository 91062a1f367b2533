"""Every ladder that is found: right in both languages, on both engines, and true to its claims."""

from __future__ import annotations

import functools

import pytest

import gpulab
from gpulab.kernels import Case, Ladder, Problem, Rung, Verdict
from gpulab.profiler import profile

GPU = "A100"
LADDERS = gpulab.kernels()
RUNGS = [(ladder, rung, language) for ladder in LADDERS for rung in ladder.rungs for language in rung.languages]
CASES = [(ladder, rung, language, case) for ladder, rung, language in RUNGS for case in ladder.cases]
CLAIMS = [(ladder, rung, language) for ladder, rung, language in RUNGS if rung.claim]


def _label(parts: tuple[object, ...]) -> str:
    return "-".join(str(getattr(part, "name", part)).replace(" ", "_") for part in parts)


@functools.cache
def _problem(ladder_name: str, case_name: str) -> Problem:
    ladder = gpulab.kernels.ladder(ladder_name)
    case = next(case for case in ladder.cases if case.name == case_name)
    return ladder.at(case.kind, **case.parameters)


def _run(problem: Problem, rung: Rung, language: str) -> Verdict:
    attempt = problem.attempt(rung, language)
    for bound, arguments in attempt.launches:
        bound(*arguments)
    return problem.judge(attempt.arrays)


@functools.cache
def _claimed_value(ladder_name: str, rung_name: str, language: str, metric_of: str) -> float:
    """The metric that the rung `metric_of` claims, summed over the launches of the rung `rung_name`."""
    ladder = gpulab.kernels.ladder(ladder_name)
    claim = ladder.rung(metric_of).claim
    assert claim is not None
    attempt = _problem(ladder_name, ladder.cases[0].name).attempt(rung_name, language)
    profiles = [profile(bound, *arguments, gpu=GPU) for bound, arguments in attempt.launches]
    return sum(claim.value(one.metrics, one.time.terms) for one in profiles)


@pytest.fixture(autouse=True)
def on_the_emulated_gpu() -> None:
    gpulab.use(GPU)


@pytest.mark.parametrize(("ladder", "rung", "language", "case"), CASES, ids=map(_label, CASES))
def test_right_on_every_case(ladder: Ladder, rung: Rung, language: str, case: Case) -> None:
    verdict = _run(_problem(ladder.name, case.name), rung, language)
    assert verdict.correct, verdict.message


@pytest.mark.parametrize(("ladder", "rung", "language"), RUNGS, ids=map(_label, RUNGS))
def test_both_engines_agree_to_the_last_bit_and_count(
    ladder: Ladder, rung: Rung, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = _problem(ladder.name, ladder.cases[-1].name)
    outcomes = []
    for engine in ("compiled", "reference"):
        monkeypatch.setenv("GPULAB_ENGINE", engine)
        attempt = problem.attempt(rung, language)
        records = [gpulab.current().launch(bound, arguments, count=True) for bound, arguments in attempt.launches]
        outcomes.append((attempt.arrays, [record.counters for record in records]))
    (arrays, counted), (true_arrays, truly_counted) = outcomes
    assert problem.judge(true_arrays).correct
    for name in ladder.outputs:
        assert arrays[name].tobytes() == true_arrays[name].tobytes()
    for counters, true_counters in zip(counted, truly_counted, strict=True):
        assert counters.differences(true_counters) == {}


@pytest.mark.parametrize(("ladder", "rung", "language"), CLAIMS, ids=map(_label, CLAIMS))
def test_claim_holds(ladder: Ladder, rung: Rung, language: str) -> None:
    assert rung.claim is not None
    value = _claimed_value(ladder.name, rung.name, language, rung.name)
    base = _claimed_value(ladder.name, rung.claim.against, language, rung.name)
    assert rung.claim.holds(value, base), f"{rung.claim.sentence()}: {value} against {base}"


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_default_sizes_show_the_point_in_modeled_time(ladder: Ladder) -> None:
    problem = ladder.at()
    seconds, launch_share = [], []
    for rung in (ladder.rungs[0], ladder.rungs[-1]):
        attempt = problem.attempt(rung, ladder.languages[0])
        profiles = [profile(bound, *arguments, gpu=GPU) for bound, arguments in attempt.launches]
        assert problem.judge(attempt.arrays).correct
        seconds.append(sum(one.time.seconds for one in profiles))
        launch_share.append(sum(one.time.terms["launch"] for one in profiles) / seconds[-1])
    assert seconds[0] >= 1.2 * seconds[1]
    assert max(launch_share) < 0.5
