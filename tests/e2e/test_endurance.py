"""Thirty kills and a fifth of all requests failing: the records are those of an undisturbed run."""

from pathlib import Path

from benchmarks.endurance import crash_test, fault_test


def test_kills_lose_nothing_and_pay_nothing_twice(tmp_path: Path) -> None:
    report = crash_test(tmp_path, kills=30, tasks=24)
    assert report.committed_asked_again == 0, "a reply that was on disk was paid for again"
    assert report.asked_again <= report.in_flight_at_most
    assert report.requests == report.needed + report.asked_again > 0
    assert report.same_records


def test_faults_change_no_record(tmp_path: Path) -> None:
    report = fault_test(tmp_path, share=0.2, tasks=12)
    assert report.faults > 9, "every kind of fault was met"
    assert report.completed == report.sessions == 12
    assert report.same_records
    assert report.retries > 0
