"""What is tried again when a store refuses, and how long a lock is waited for."""

from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException, RestException

from codechat.report.tracking import TrackingError
from codechat.report.tracking import store as locks
from codechat.report.tracking.address import Address

REFUSED = RestException({"error_code": "BAD_REQUEST", "message": 'duplicate key violates "dataset_pk"'})


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LONGEST_PAUSE_S", 0.0)


class Store:
    """Fails as often as it has errors, then takes the row."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.asked = list(errors), 0

    def write(self) -> str:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return "written"


def test_what_a_store_refuses_is_looked_up_again() -> None:
    store = Store(REFUSED, REFUSED)
    assert locks.insist(store.write) == "written"
    assert store.asked == 3


def test_a_store_that_goes_on_refusing_is_reported() -> None:
    store = Store(*[REFUSED] * 10)
    with pytest.raises(RestException, match="dataset_pk"):
        locks.insist(store.write)
    assert store.asked == locks.ATTEMPTS


def test_a_store_that_does_not_answer_is_not_asked_again() -> None:
    store = Store(MlflowException("API request to http://x failed"))
    with pytest.raises(MlflowException, match="failed"):
        locks.insist(store.write)
    assert store.asked == 1


def test_a_lock_is_waited_for_and_then_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LOCK_TIMEOUT_S", 0)
    address = Address.of(f"sqlite:///{tmp_path}/store.db")
    with locks.lock(address), pytest.raises(TrackingError, match="for 0 s"), locks.lock(address):
        pass
