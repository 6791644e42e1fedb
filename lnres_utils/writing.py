"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path

UNFINISHED = ".new-"  # how the name of a file begins until it is whole


def write_whole(path: Path, parts):
    """Replace a file in one step, so that nobody ever sees half of it, also if the power fails.

    Parameters
    ----------
    parts : iterable of bytes

    The permissions are those of the file that was there, or of any new file. Raises OSError, and
    leaves what was there, if something cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
