"""Messages between a worker and a student's process: whatever comes is a message or refused."""

import json
import select
import socket
import threading

import numpy as np
import pytest

from lnres_utils.grading.sandboxed import wire
from lnres_utils.grading.sandboxed.wire import LENGTHS, Channel, Closed, Late, Malformed


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def frame(text, body=b""):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return LENGTHS.pack(len(text), len(body)) + text + body


ARRAYS = {
    "values": np.linspace(-1, 1, 24).reshape(2, 3, 4),
    "no numbers": np.empty((3, 0, 2), np.float32),
    "one number": np.array(2.5),
    "not finite": np.array([np.nan, np.inf, -np.inf, -0.0]),
    "half": np.arange(5, dtype=np.float16),
    "whole": np.arange(-3, 3, dtype=np.int8),
    "truth values": np.array([True, False]),
    "other order of bytes": np.arange(3, dtype=">f8"),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "read-only view": np.broadcast_to(np.arange(3.0), (4, 3)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_comes_as_it_went(name, ends):
    channel, theirs = ends
    Channel(theirs).send({"outputs": {"y": ARRAYS[name]}, "n": [1, "ä", None, {"a": 2.0}]})
    message = channel.receive(5)
    y = message["outputs"]["y"]
    assert message["n"] == [1, "ä", None, {"a": 2.0}]
    assert (y.dtype, y.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
    assert np.array_equal(y, ARRAYS[name], equal_nan=True) and y.flags.writeable


def test_numbers_of_numpy_come_as_numbers():
    message = wire.unpack(wire.encode({"a": np.int64(3), "b": np.float32(0.5), "c": np.True_}))
    assert message == {"a": 3, "b": 0.5, "c": True} and type(message["a"]) is int


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize("value", [
    np.array([object()]), np.array(["text"]), np.zeros(2, "M8[s]"), np.zeros(2, complex),
    np.zeros(2, [("a", float)]), np.zeros(3, np.longdouble), np.longdouble(1), {1, 2}, object(),
    b"bytes", np.zeros(wire.MOST_BYTES + 8, np.uint8), "x" * (wire.MOST_TEXT + 1),
], ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}")
def test_what_cannot_be_carried_is_not_sent(value):
    with pytest.raises(Malformed):
        wire.encode({"value": value})


def test_an_array_of_a_subclass_comes_as_a_plain_one():
    message = wire.unpack(wire.encode({"y": np.arange(3.0).view(Sub)}))
    assert type(message["y"]) is np.ndarray


def array(form, body=b"\0" * 64):
    return frame({"y": {"$array": form}}, body)


DEEP = 20_000  # what the buffers of a pair of sockets hold
MALFORMED = {
    "no JSON": frame(b"{]"),
    "no text": frame(b""),
    "no UTF-8": frame(b'{"a": "\xff\xfe"}'),
    "a list": frame([1]),
    "a number": frame(3),
    "nested lists": frame(b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "nested objects": frame(b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "a number of 20,000 digits": frame(b'{"a":' + b"9" * DEEP + b"}"),
    "bytes of no array": frame({"a": 1}, b"\0" * 8),
    "more bytes than its array has": array(["<f8", [1]]),
    "fewer": array(["<f8", [9]]),
    "objects": array(["|O", [8]]),
    "longdouble": array(["<f16", [4]]),
    "complex": array(["<c16", [4]]),
    "text": array(["<U16", [1]]),
    "a record": array(["f8,f8", [4]]),
    "a sub-array": array(["(2)f8", [4]]),
    "what NumPy fails to parse": array(["(,)f8", [4]]),
    "no dtype": array([None, [8]]),
    "a dtype that is a list": array([["<f8"], [8]]),
    "a negative size": array(["<f8", [-8]]),
    "sizes that overflow": array(["<f8", [2**32, 2**32]]),
    "huge sizes times zero": array(["<f8", [2**62, 0]], b""),
    "a size that is no whole number": array(["<f8", [8.0]]),
    "a size that is a truth value": array(["<f8", [True]], b"\0" * 8),
    "a shape that is a number": array(["<f8", 8]),
    "too many axes": array(["<f8", [1] * 9], b"\0" * 8),
    "no form": array(None),
    "a form that is an object": array({"a": 1}),
    "two lengths too many": array(["<f8", [8], 1]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_message_is_refused(name, ends):
    channel, theirs = ends
    theirs.sendall(MALFORMED[name])
    with pytest.raises(Malformed):
        channel.receive(5)


@pytest.mark.parametrize("lengths", [(2**32 - 1, 0), (2, 2**32 - 1), (wire.MOST_TEXT + 1, 0)])
def test_a_huge_message_is_refused_before_it_comes(lengths, ends):
    channel, theirs = ends
    theirs.sendall(LENGTHS.pack(*lengths))
    with pytest.raises(Malformed, match="a message of"):
        channel.receive(5)


def test_a_message_can_be_waited_for_again(ends):
    channel, theirs = ends
    whole = wire.encode({"y": np.arange(1000.0)})
    theirs.sendall(whole[:3])
    with pytest.raises(Late):
        channel.receive(0.01)
    theirs.sendall(whole[3:500])
    with pytest.raises(Late):
        channel.receive(0.01)
    theirs.sendall(whole[500:] + wire.encode({"next": 1})[:5])
    assert channel.receive(5)["y"][-1] == 999
    theirs.sendall(wire.encode({"next": 1})[5:])
    assert channel.receive(5) == {"next": 1}


def test_a_wait_of_no_time_gives_what_is_there(ends):
    channel, theirs = ends
    with pytest.raises(Late):
        channel.receive(0)
    theirs.sendall(wire.encode({"a": 1}))
    assert channel.receive(0) == {"a": 1}


def test_a_closed_channel_is_told(ends):
    channel, theirs = ends
    theirs.sendall(b"\0\0")
    theirs.close()
    with pytest.raises(Closed):
        channel.receive(5)
    with pytest.raises(Closed):
        for _ in range(2):  # the first may still fit into the buffer
            channel.send({"a": "x" * 100_000}, wait=5)


def test_nobody_waits_for_ever_to_send(ends):
    channel, _ = ends
    with pytest.raises(Late):
        channel.send({"y": np.zeros(1 << 20)}, wait=0.05)


def test_a_message_larger_than_the_buffers_comes_through(ends):
    channel, theirs = ends
    sender = threading.Thread(target=Channel(theirs).send, args=({"y": np.ones(1 << 20)},))
    sender.start()
    assert channel.receive(30)["y"].sum() == 1 << 20
    sender.join()


# The two sockets of a student's process: bells on one of them, messages on the other.


@pytest.fixture
def pair():
    """Who listens and who tells, and the other ends of the second one's sockets."""
    (bell, rung), (line, said) = (socket.socketpair() for _ in range(2))
    listening, telling = wire.Listening(bell, line), wire.Telling(rung, said)
    yield listening, telling, rung, said
    listening.close()
    rung.close()
    said.close()


def test_what_is_posted_rings_no_bell_and_comes_in_order(pair):
    listening, telling, *_ = pair

    def has_rung():
        return bool(select.select([listening.socket], [], [], 0)[0])

    for n in range(3):
        telling.post(wire.encode({"n": n}))
    assert not has_rung()
    telling.send({"n": 3})
    assert has_rung()
    assert [listening.receive(5)["n"] for _ in range(4)] == [0, 1, 2, 3]


def test_what_was_posted_before_the_end_is_heard(pair):
    listening, telling, rung, said = pair
    for n in range(2):
        telling.post(wire.encode({"n": n}))
    rung.close()
    said.close()
    assert [listening.receive(5)["n"] for _ in range(2)] == [0, 1]
    with pytest.raises(Closed):
        listening.receive(5)


@pytest.mark.parametrize("closed", ["bell", "line"])
def test_one_closed_socket_is_the_end(closed, pair):
    listening, telling, rung, said = pair
    telling.post(wire.encode({"n": 0}))
    (rung if closed == "bell" else said).close()
    assert listening.receive(5) == {"n": 0}
    if closed == "line":
        rung.send(b"!")
    with pytest.raises(Closed):
        listening.receive(5)
    with pytest.raises(Closed):
        telling.send({"n": 1})


def test_bells_without_messages_do_not_hold_up_the_clock(pair):
    listening, telling, rung, _ = pair
    rung.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            rung.send(b"!" * 4096)
    with pytest.raises(Late):
        listening.receive(0.05)
    telling.send({"n": 1})  # and a bell too many is none too few
    assert listening.receive(5) == {"n": 1}


@pytest.mark.parametrize("posted", [True, False])
def test_more_than_the_line_holds_comes_through(posted, pair):
    listening, telling, *_ = pair
    large = wire.encode({"y": np.ones(1 << 19)})

    def tell():
        for _ in range(5):
            (telling.post if posted else telling.send_bytes)(large)
        telling.send({"end": True})

    teller = threading.Thread(target=tell)
    teller.start()
    for _ in range(5):
        assert listening.receive(30)["y"].size == 1 << 19
    assert listening.receive(30) == {"end": True}
    teller.join(30)


def test_half_a_message_can_be_waited_for_again(pair):
    listening, telling, _, said = pair
    whole = wire.encode({"y": np.arange(1000.0)})
    said.send(whole[:500])
    telling._ring()
    with pytest.raises(Late):
        listening.receive(0.01)
    said.send(whole[500:])  # without a bell: it is the message that is waited for
    assert listening.receive(5)["y"][-1] == 999
