"""Folders in which students' code may write: how full they are, and how they go again.

Names there are students' choice: a folder may be deeper than a path may be long, and closed.
"""

import contextlib
import itertools
import os
import tempfile

PREFIX = "lnres-grade-"
MOST_BYTES = 64 << 20
MOST_FILES = 4000
MOST_DEEP = 50


def new(record):
    """A new folder for the processes of a run; that of an earlier run, which was killed, goes.

    Parameters
    ----------
    record : file, open for reading and writing, that holds where the folder lies
    """
    record.seek(0)
    before = os.fsdecode(record.read())
    if os.path.basename(before).startswith(PREFIX) and not os.path.islink(before):
        with contextlib.suppress(OSError):
            remove(before)
    folder = tempfile.mkdtemp(prefix=PREFIX)
    record.truncate(0)
    record.write(os.fsencode(folder))
    record.flush()
    return folder


def is_full(folder):
    """Whether there is more in a folder than there may be; what cannot be seen is too much."""
    count = size = 0
    waiting = [(folder, 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError:
            return True
        if size > MOST_BYTES or count > MOST_FILES or depth > MOST_DEEP:
            return True
    return False


def remove(folder):
    """Remove a folder and all in it. Folders within are first moved up, so that paths stay short.
    """
    numbers = itertools.count()
    waiting = [folder]
    flat = []
    while waiting:
        path = waiting.pop()
        flat.append(path)
        os.chmod(path, 0o700)
        with os.scandir(path) as entries:
            found = list(entries)
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            place = entry.path
            if path != folder:
                place = os.path.join(folder, f"{os.urandom(8).hex()}-{next(numbers)}")
                os.rename(entry.path, place)
            waiting.append(place)
    for path in reversed(flat):
        os.rmdir(path)
