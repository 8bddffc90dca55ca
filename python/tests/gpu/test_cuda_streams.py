"""Streams, events and graphs."""

import gc
import itertools
import weakref

import pytest

import cuop

SIZE = 1 << 22


def test_a_stream_is_current_inside_its_block():
    outside = cuop.current_stream("cuda")
    assert outside.handle == 0
    first, second = cuop.Stream("cuda"), cuop.Stream("cuda", priority=-1)
    assert first != second
    with first:
        assert cuop.current_stream("cuda") == first
        with second:
            assert cuop.current_stream("cuda") == second
        assert cuop.current_stream("cuda") == first
    assert cuop.current_stream("cuda") == outside
    assert first.__cuda_stream__() == (0, first.handle)


def test_streams_wait_for_each_other():
    first, second = cuop.Stream("cuda"), cuop.Stream("cuda")
    for round in range(10):
        with first:
            source = cuop.zeros((SIZE,), device="cuda")
            for _ in range(20):
                source.fill(round)
        second.wait(first)
        with second:
            copied = source.clone()
        second.synchronize()
        assert second.is_idle()
        assert copied[0].item() == copied[SIZE - 1].item() == round


def test_events_mark_and_measure():
    start, end = cuop.Event("cuda", timed=True), cuop.Event("cuda", timed=True)
    start.record()
    for _ in range(10):
        cuop.ones((SIZE,), device="cuda")
    end.record()
    assert end.elapsed_ms(start) > 0
    assert end.is_done()
    other = cuop.Stream("cuda")
    end.wait(other)
    other.wait(end)
    with pytest.raises(cuop.ExecutionError, match="timed=True"):
        cuop.Event("cuda").elapsed_ms(start)


def test_events_of_two_devices_cannot_be_measured():
    names = ["cpu", *(f"cuda:{index}" for index in range(cuop.device_count("cuda")))]
    events = [cuop.Event(name, timed=True) for name in names]
    for event in events:
        event.record()
    for one, other in itertools.permutations(events, 2):
        words = f"event: one of {one.device} cannot be measured from one of .*same device"
        with pytest.raises(cuop.DeviceError, match=words):
            one.elapsed_ms(other)


def test_the_streams_of_pytorch_are_taken():
    torch = pytest.importorskip("torch")
    theirs = torch.cuda.Stream()
    ours = cuop.external_stream(theirs)
    assert ours.handle == theirs.cuda_stream
    with ours:
        assert cuop.current_stream("cuda") == ours
        value = cuop.full((1000,), 4, device="cuda")
    ours.synchronize()
    assert theirs.query()
    assert value[999].item() == 4
    assert cuop.external_stream(torch.cuda.default_stream()).handle == 0
    with pytest.raises(cuop.DTypeError, match="external_stream"):
        cuop.external_stream("first")


def test_who_lends_a_stream_is_kept_for_the_memory_that_was_used_on_it():
    class Lender:
        def __init__(self):
            self.stream = cuop.Stream("cuda")

        def __cuda_stream__(self):
            return self.stream.__cuda_stream__()

    lender = Lender()
    gone = weakref.ref(lender)
    with cuop.external_stream(lender):
        value = cuop.full((1000,), 4, device="cuda")
    lender.stream.synchronize()  # the current stream, which reads below, does not wait for it
    del lender
    gc.collect()
    assert gone() is not None
    assert value[999].item() == 4


def test_a_graph_replays_its_work():
    a = cuop.full((64, 64), 1.0, device="cuda")
    b = cuop.full((64, 64), 2.0, device="cuda")
    cuop.matmul(a, b)
    graph = cuop.Graph("cuda")
    with graph:
        result = cuop.matmul(cuop.matmul(a, b), b)
    assert graph.node_count >= 2
    for value in (1, 3, 5):
        a.fill(value)
        graph.replay()
        assert result[63, 63].item() == value * 128 * 128


def test_a_failed_capture_leaves_the_device_alone():
    value = cuop.zeros((4,), device="cuda")
    graph = cuop.Graph("cuda")
    with pytest.raises(cuop.ExecutionError, match="host memory takes part"), graph:
        value.to_numpy()
    with pytest.raises(cuop.ExecutionError, match="nothing was captured"):
        graph.replay()
    with graph:
        value.fill(6)
    graph.replay()
    assert value.tolist() == [6, 6, 6, 6]


def test_recorded_work_stays_on_the_stream_where_it_was_called():
    first, second = cuop.Stream("cuda"), cuop.Stream("cuda")
    for round in range(5):
        with cuop.fused():
            with first:
                source = cuop.zeros((SIZE,), dtype="int32", device="cuda")
                for _ in range(10):
                    source.fill(round)
                result = source + 1
            second.wait(first)
            with second:
                copied = result.clone()
        second.synchronize()
        assert copied[0].item() == copied[SIZE - 1].item() == round + 1


def test_a_graph_takes_in_what_its_block_recorded_and_nothing_before():
    x = cuop.full((1000,), 1, dtype="int32", device="cuda")
    graph = cuop.Graph("cuda")
    with cuop.fused():
        before = x + 1
        with graph:
            inside = x + 2
    assert before[999].item() == 2
    x.fill(5)
    graph.replay()
    assert before[999].item() == 2
    assert inside[999].item() == 7
