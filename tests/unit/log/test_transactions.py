from pathlib import Path
from struct import unpack

import pytest

from ottla.log.log import Log
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import Place, batch_of, fill, marker


def put(log: Log, producer_id: int, sequence: int, epoch: int = 0) -> int:
    batch = batch_of("x", producer=(producer_id, epoch, sequence), transactional=True)
    return log.append_as_leader(batch, 0).base_offset


def end(log: Log, producer_id: int, *, commit: bool, epoch: int = 0) -> int:
    return log.append_as_leader(marker(producer_id, epoch, commit=commit), 0).base_offset


def test_the_last_stable_offset_waits_for_the_earliest_open_transaction(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    fill(log, 2)
    put(log, 1, 0)
    put(log, 2, 0)
    put(log, 1, 1)
    assert log.last_stable_offset(log.end_offset) == 2
    end(log, 1, commit=True)
    assert log.last_stable_offset(log.end_offset) == 3
    end(log, 2, commit=False)
    assert log.last_stable_offset(log.end_offset) == log.end_offset == 7


def test_a_transaction_whose_end_is_not_replicated_is_not_stable(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    put(log, 1, 0)
    end(log, 1, commit=True)
    fill(log, 1)
    assert log.last_stable_offset(1) == 0
    assert log.last_stable_offset(2) == 2
    assert log.last_stable_offset(3) == 3


def test_aborted_transactions_are_listed_as_kafka_lists_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    put(log, 1, 0)
    put(log, 2, 0)
    end(log, 1, commit=False)
    end(log, 2, commit=False)
    data = (place.folder / f"{0:020d}.txnindex").read_bytes()
    assert unpack(">hqqqqhqqqq", data) == (0, 1, 0, 2, 1, 0, 2, 1, 3, 4)


def test_readers_are_told_of_the_aborted_transactions_that_they_pass(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    for number in range(3):
        put(log, 1, number)
        end(log, 1, commit=number == 1)
        log.roll()
    found = log.aborted_transactions(0, log.end_offset)
    assert [(each.producer_id, each.first_offset, each.last_offset) for each in found] == [(1, 0, 1), (1, 4, 5)]
    assert [each.first_offset for each in log.aborted_transactions(2, 6)] == [4]
    assert [each.first_offset for each in log.aborted_transactions(1, 4)] == [0]
    assert log.aborted_transactions(2, 4) == []


def test_a_batch_outside_of_an_open_transaction_is_refused(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    put(log, 1, 0)
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch_of("x", producer=(1, 0, 1)), 0)
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_a_marker_of_a_newer_epoch_fences_the_producer(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    put(log, 1, 0)
    end(log, 1, commit=False, epoch=1)
    with pytest.raises(KafkaError) as caught:
        put(log, 1, 1)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_survives_a_restart_and_a_crash(tmp_path: Path) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    put(log, 1, 0)
    end(log, 1, commit=False)
    fill(log, 1)
    put(log, 2, 0)
    crashed = place.crash(tmp_path / "b").recover()
    reopened = place.reopen(log)
    assert reopened.last_stable_offset(4) == 3
    for each in (reopened, crashed):
        assert each.producers.states[2].transaction_first_offset == 3
        assert each.last_stable_offset(4) == 3
        assert [entry.last_offset for entry in each.aborted_transactions(0, 4)] == [1]
        end(each, 2, commit=False)
        assert [entry.last_offset for entry in each.aborted_transactions(0, 5)] == [1, 4]
        assert each.last_stable_offset(5) == 5


def test_a_lost_list_of_aborted_transactions_is_made_anew(tmp_path: Path) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    put(log, 1, 0)
    end(log, 1, commit=False)
    crashed = place.crash(tmp_path / "b")
    (crashed.folder / f"{0:020d}.txnindex").unlink()
    assert [entry.last_offset for entry in crashed.recover().aborted_transactions(0, 2)] == [1]


def test_a_marker_that_the_disk_refuses_leaves_the_transaction_open(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    put(log, 1, 0)
    for refused in (".txnindex", ".log"):
        place.disk.refused = refused
        with pytest.raises(KafkaError):
            end(log, 1, commit=False)
        assert log.aborted_transactions(0, 10) == []
        assert log.last_stable_offset(log.end_offset) == 0
    place.disk.refused = None
    end(log, 1, commit=False)
    assert len(log.aborted_transactions(0, 10)) == 1


def test_truncation_reopens_a_transaction(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    put(log, 1, 0)
    end(log, 1, commit=False)
    log.truncate_to(1)
    assert log.last_stable_offset(1) == 0
    assert log.aborted_transactions(0, 10) == []
