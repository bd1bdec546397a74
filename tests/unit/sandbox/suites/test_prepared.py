"""Prepared suites in memory: made once, and the oldest go first where they are too large together."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.sandbox.suites.calls import python
from codechat.sandbox.suites.calls.python import PreparedStore


def prepared(weight: int) -> Any:
    return SimpleNamespace(size_in_memory=weight)


@pytest.mark.parametrize(
    ("weights", "kept"),
    [
        ([4, 6], "01"),
        ([4, 7], "1"),
        ([11], "0"),
        ([1, 11], "1"),
        ([5, 3, 4], "12"),
        ([3, 3, 3], "012"),
        ([5, 5, 5], "12"),
    ],
)
def test_the_oldest_go_until_the_rest_fits_and_the_last_one_stays(
    monkeypatch: pytest.MonkeyPatch, weights: list[int], kept: str
) -> None:
    monkeypatch.setattr(python, "KEPT_BYTES", 10)
    store, made = PreparedStore(), list[str]()
    for at, weight in enumerate(weights):
        store.get(str(at), lambda weight=weight: prepared(weight))  # type: ignore[misc]
    assert "".join(store._kept) == kept and not store._computing
    for at in range(len(weights)):
        if str(at) in kept:
            store.get(str(at), lambda: made.append("again"))  # type: ignore[arg-type, return-value]
    assert made == []


def test_what_was_used_last_goes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "KEPT_BYTES", 10)
    store = PreparedStore()
    for key in "aba":
        store.get(key, lambda: prepared(4))
    store.get("c", lambda: prepared(4))
    assert "".join(store._kept) == "ac"


def test_a_suite_is_prepared_once_by_threads_and_again_after_a_failure() -> None:
    store, made, first = PreparedStore(), list[int](), threading.Event()

    def make() -> Any:
        first.set()
        made.append(1)
        return prepared(1)

    def fail() -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.get("a", fail)
    threads = [threading.Thread(target=store.get, args=("a", make)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert made == [1] and first.is_set()
