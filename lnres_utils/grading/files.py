"""Files of a folder or of a zip file, listed and read alike; nothing is extracted to disk."""

import io
import lzma
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from lnres_utils.grading.errors import GradingError, Unreadable
from lnres_utils.grading.model import Source
from lnres_utils.grading.unpacking import LARGEST, too_large

NO_NOTEBOOK = "a folder without a notebook"
MOST_LISTED = 1 << 20  # bytes of the directory of a student's zip file: about 10,000 members
# What the system, an editor or a platform adds to a folder.
_NOT_HANDED_IN = ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini", "timestamp.txt")
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError,
    RuntimeError,  # encrypted; or NotImplementedError, a compression that Python lacks
    ValueError, OverflowError,
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A file or folder below what was given to collect."""

    parts: tuple[str, ...]  # of its path, readable names
    source: Source
    is_folder: bool = False

    @property
    def name(self):
        return self.parts[-1]

    @property
    def path(self):
        return "/".join(self.parts)


def folder_entries(root):
    """Entries of all that lies below the folder ``root``, in the order of their names."""
    entries, folders = [], [(root, ())]
    while folders:
        folder, above = folders.pop()
        try:
            inside = list(os.scandir(folder))
        except OSError as error:
            if not above:
                raise GradingError(f"{root}: {_reason(error)}; give a folder to read") from None
            continue  # it is an entry, and `open_source` will say why nothing is in it
        for found in inside:
            parts = (*above, _readable(os.fsencode(found.name)))
            if _is_handed_in(parts[-1:]):
                is_folder = found.is_dir(follow_symlinks=False)
                entries.append(Entry(parts, _file_source(Path(found.path)), is_folder))
                if is_folder:
                    folders.append((Path(found.path), parts))
    return sorted(entries, key=lambda entry: entry.parts)


def file_entry(path):
    """The entry of a single file."""
    return Entry((_readable(os.fsencode(path.name)),), _file_source(path))


def _file_source(path):
    try:
        return Source(path, modified=path.stat().st_mtime)
    except OSError:  # a link to nothing; reading it will say so
        return Source(path)


def zip_entries(source, most_listed=None):
    """Entries of the members of the zip file at ``source``; a GradingError if it is none."""
    if source.member:
        archive = _archive_of(io.BytesIO(open_source(source)), source.shown, most_listed)
    else:
        archive = _archive_at(source.path, most_listed)
    entries = []
    for name, info in archive.members.items():
        parts = tuple(part for part in name.split("/") if part not in ("", ".", ".."))
        if parts and _is_handed_in(parts):
            names = {"inner" if source.member else "member": name}
            where = Source(source.path, **{"member": source.member, **names},
                           modified=_modified(info))
            entries.append(Entry(parts, where, info.is_dir()))
    return sorted(entries, key=lambda entry: entry.parts)


def open_source(source: Source) -> bytes:
    """Read the bytes at ``source``; a GradingError of one line says why they cannot be read."""
    try:
        if source.inner:
            outer = Source(source.path, source.member)
            archive = _archive_of(io.BytesIO(open_source(outer)), source.shown, MOST_LISTED)
            return archive.read(source.inner)
        if source.member:
            return _archive_at(source.path, None).read(source.member)
        return _file_bytes(source.path)
    except _UNREADABLE as error:
        raise GradingError(_reason(error)) from None


def _file_bytes(path):
    kind = path.stat()
    if stat.S_ISDIR(kind.st_mode):
        os.scandir(path).close()  # says if it may not be read
        raise Unreadable(NO_NOTEBOOK)
    if not stat.S_ISREG(kind.st_mode):  # to open a pipe would wait for ever
        raise GradingError("not a regular file")
    with path.open("rb") as file:
        return _bounded(file, kind.st_size)


def _bounded(file, size):
    """All bytes of ``file``, whatever size it claims to have."""
    if size > LARGEST:
        raise Unreadable(too_large(size))
    data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unreadable(too_large(len(data)))
    return data


@dataclass(frozen=True)
class _Archive:
    file: zipfile.ZipFile
    members: dict  # ZipInfo by readable name; of two with one name the last, as zip tools do

    def read(self, member):
        info = self.members.get(member)
        if info is None:
            raise GradingError(f"no {member!r} in the zip file any more; collect again")
        if info.is_dir():
            raise Unreadable(NO_NOTEBOOK)
        if info.flag_bits & 1:
            raise Unreadable("encrypted; a zip file without a password is needed")
        with self.file.open(info) as file:
            return _bounded(file, info.file_size)


def _archive_at(path, most_listed):
    try:
        found = path.stat()
        # A process of its own, because two that share an open file would share its position.
        return _opened(path, (found.st_mtime_ns, found.st_size), os.getpid(), most_listed)
    except OSError as error:
        raise GradingError(f"{path.name}: {_reason(error)}") from None


@lru_cache(maxsize=4)
def _opened(path, _stamp, _process, most_listed):
    return _archive_of(path, path.name, most_listed)


def _archive_of(file, shown, most_listed):
    try:
        if most_listed is not None:
            _check_listed(file, most_listed)
        archive = zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise GradingError(f"{shown}: no zip file that can be read ({_reason(error)})") from None
    return _Archive(archive, {_member_name(info): info for info in archive.infolist()})


def _check_listed(file, most_listed):
    """Refuse a zip file whose mere list of members would fill the memory."""
    with file.open("rb") if isinstance(file, Path) else io.BytesIO(file.getbuffer()) as opened:
        opened.seek(0, io.SEEK_END)
        opened.seek(max(0, opened.tell() - (1 << 16) - 22))
        end = opened.read()
    place = end.rfind(b"PK\5\6")
    listed = struct.unpack_from("<I", end, place + 12)[0] if place >= 0 else 0
    if listed > most_listed:
        raise ValueError("too many members")


def _member_name(info):
    """The name of a member; many programs write UTF-8 and do not say so."""
    name = info.filename
    if not info.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return unicodedata.normalize("NFC", name.replace("\\", "/"))


def _readable(name):
    """A file's name as text in one spelling: an ü may be one character or two."""
    try:
        return unicodedata.normalize("NFC", name.decode("utf-8"))
    except UnicodeDecodeError:
        return name.decode("cp1252", "replace")


def _is_handed_in(parts):
    return not any(part.startswith(".") or part in _NOT_HANDED_IN for part in parts)


def _modified(info):
    try:
        return datetime(*info.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _reason(error):
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return " ".join(f"{error or type(error).__name__}".split())[:200]
