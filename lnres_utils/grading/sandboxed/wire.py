"""Messages between the one who grades and a student's process: JSON and raw arrays, never pickle.

A frame is two lengths of four bytes, a JSON text, and the bytes of the arrays that it names. Who
reads checks every size before it allocates anything.
"""

import contextlib
import json
import math
import select
import struct
import time

import numpy as np

LENGTHS = struct.Struct("!II")
MOST_TEXT = 1 << 20  # bytes of JSON in a frame
MOST_BYTES = 8 << 20  # bytes of arrays in a frame
MOST_AXES = 8
PART = 1 << 16  # bytes that are read at once
# Floats, whole numbers, truth values, in either order of bytes: nothing that holds an object.
FORMS = frozenset(("|b1", "|i1", "|u1", *(order + form for order in "<>" for form in (
    "f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"))))
ARRAY = "$array"  # the key that stands for an array in the JSON


class Closed(Exception):
    """The other side has gone, or closed the channel."""


class Late(Exception):
    """Nothing came in time."""


class Malformed(Exception):
    """What came is no message, or is too large for one; the text says which."""


def encode(message):
    """The bytes of a message: dicts with string keys, lists, strings, numbers, None and arrays."""
    arrays = []
    text = json.dumps(message, default=lambda value: _named(value, arrays)).encode()
    body = b"".join(arrays)
    if len(text) > MOST_TEXT or len(body) > MOST_BYTES:
        raise Malformed(f"a message of {len(text) + len(body):,} bytes; at most "
                        f"{MOST_TEXT:,} of text and {MOST_BYTES:,} of arrays are allowed")
    return LENGTHS.pack(len(text), len(body)) + text + body


def _named(value, arrays):
    """What stands for an array in the JSON; a number of NumPy's becomes one of Python's."""
    form = getattr(value, "dtype", None)
    if form is None or form.str not in FORMS or not isinstance(value, (np.ndarray, np.generic)):
        kind = f"an array of dtype {form}" if form is not None else type(value).__name__
        raise Malformed(f"{kind} cannot be sent")
    if isinstance(value, np.generic):
        return value.item()
    value = np.ascontiguousarray(value).reshape(value.shape)
    arrays.append(value.tobytes())
    return {ARRAY: [value.dtype.str, list(value.shape)]}


def decode(text, body):
    """The message in the two parts of a frame."""
    position = 0

    def restored(value):
        nonlocal position
        if ARRAY not in value:
            return value
        dtype, shape = _form(value)
        size = math.prod(shape) * dtype.itemsize
        if size > len(body) - position:
            raise Malformed("an array longer than what was sent")
        array = np.frombuffer(body, dtype, math.prod(shape), position).reshape(shape).copy()
        position += size
        return array

    try:
        message = json.loads(text, object_hook=restored)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no JSON: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise Malformed("a message that is no object")
    if position < len(body):
        raise Malformed("more bytes than its arrays have")
    return message


def _form(value):
    """The dtype and the shape of an array, if they are what they should be."""
    match value[ARRAY]:
        case [str(name), [*shape]] if name in FORMS and len(shape) <= MOST_AXES:
            if all(type(size) is int and 0 <= size <= MOST_BYTES for size in shape):
                return np.dtype(name), tuple(shape)
    raise Malformed("an array of a form that is not allowed")


def unpack(frame):
    """The message in the bytes of one whole frame."""
    text, _ = LENGTHS.unpack_from(frame)
    start = LENGTHS.size
    return decode(frame[start:start + text], frame[start + text:])


class Channel:
    """Sends and receives messages over a connected socket."""

    def __init__(self, socket):
        self.socket = socket
        self._unread = bytearray()  # kept when nothing more came in time

    def send(self, message, wait=None):
        """Send a message; raises ``Closed`` if nobody can receive it, ``Late`` if nobody does."""
        self.send_bytes(encode(message), wait)

    def send_bytes(self, frame, wait=None):
        """Send what ``encode`` gave, for a message that goes to many. After ``Late`` close."""
        try:
            self.socket.settimeout(wait)
            self.socket.sendall(frame)
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Closed(str(error)) from None

    def receive(self, wait=None):
        """The next message; after ``Late`` it can be asked for again.

        Parameters
        ----------
        wait : float, seconds until ``Late`` is raised; None waits for ever
        """
        end = None if wait is None else time.monotonic() + wait
        self._fill(LENGTHS.size, end)
        text, body = LENGTHS.unpack_from(self._unread)
        if text > MOST_TEXT or body > MOST_BYTES:
            raise Malformed(f"a message of {text + body:,} bytes")
        whole = LENGTHS.size + text + body
        self._fill(whole, end)
        frame = bytes(self._unread[:whole])
        del self._unread[:whole]
        return unpack(frame)

    def _fill(self, count, end):
        """Read until there are ``count`` bytes."""
        while len(self._unread) < count:
            try:
                part = self._part(end)
            except TimeoutError:
                raise Late from None
            except OSError as error:
                raise Closed(str(error)) from None
            if not part:
                raise Closed("the other side closed the channel")
            self._unread += part

    def _part(self, end):
        self.socket.settimeout(end and max(1e-6, end - time.monotonic()))
        return self.socket.recv(PART)

    def close(self):
        self.socket.close()


class Telling(Channel):
    """The end of a student's process: what it says goes into a line of its own.

    Whoever listens waits for a bell and not at the line, so that many messages wake it once; to be
    woken for each would take longer than most answers do.

    Parameters
    ----------
    socket : connected; requests come over it, and bells go
    line : connected; messages go over it
    """

    def __init__(self, socket, line):
        super().__init__(socket)
        self._line = line
        line.setblocking(False)

    def send_bytes(self, frame, wait=None):
        self.post(frame)
        self._ring()

    def post(self, frame):
        """Send what ``encode`` gave, to be read no later than the next message that is sent."""
        left = memoryview(frame)
        try:
            while left:
                try:
                    left = left[self._line.send(left):]
                except BlockingIOError:  # the line is full; who listens has to know that
                    self._ring()
                    select.select([], [self._line], [])
        except OSError as error:
            raise Closed(str(error)) from None

    def _ring(self):
        try:
            self.socket.setblocking(False)
            self.socket.send(b"!")
        except BlockingIOError:
            pass  # there are bells enough
        except OSError as error:
            raise Closed(str(error)) from None


class Listening(Channel):
    """The other end of ``Telling``, which can also read what was said before a process ended."""

    def __init__(self, socket, line):
        super().__init__(socket)
        self._line = line
        line.setblocking(False)

    def _part(self, end):
        while True:
            with contextlib.suppress(BlockingIOError):
                return self._line.recv(PART)
            if self._unread:  # the rest of a message is on its way
                _await(self._line, end)
                continue
            _await(self.socket, end)
            if not self.socket.recv(PART):  # no bell: the process has gone
                with contextlib.suppress(BlockingIOError):
                    return self._line.recv(PART)
                return b""

    def close(self):
        super().close()
        self._line.close()


def _await(socket, end):
    """Wait until there is something to read; raises ``TimeoutError`` at ``end``."""
    left = None if end is None else max(0.0, end - time.monotonic())
    if not select.select([socket], [], [], left)[0]:
        raise TimeoutError
