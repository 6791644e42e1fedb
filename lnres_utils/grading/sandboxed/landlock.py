"""Landlock: which files a process, and all that it starts, can open from now on.

Two layers, and a process may only do what both allow. The first is laid on the zygote: packages,
one by one, and the folder of all scratch folders. The second is laid on a child: its own scratch
folder and, at large, where packages lie.
"""

import os
import site
import struct
import sys
import sysconfig
from pathlib import Path

from lnres_utils.grading.sandboxed.kernel import call

CREATE, ADD, RESTRICT = 444, 445, 446  # numbers of the system calls, the same on all machines
VERSION = 1  # flag: tell the version of the interface
BENEATH = 1  # kind of rule: a file, or a folder and all that is in it
WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
READ = READ_FILE | READ_DIR
# Remove folders and files, make folders, files, pipes and links, rename, truncate.
WRITE = WRITE_FILE | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14
ALL = READ | WRITE
ON_FILES = WRITE_FILE | READ_FILE | 1 << 14
# Versions of the interface: how many rights on files they know, on networks, and of scopes.
RIGHTS = {1: (13, 0, 0), 2: (14, 0, 0), 3: (15, 0, 0), 4: (15, 2, 0), 5: (16, 2, 0)}
NEWEST = (16, 2, 2)
PACKAGES = "-packages"  # how folders of installed packages are called; some lie in the library
DEVICES = {"/dev/null": READ_FILE | WRITE_FILE, "/dev/urandom": READ_FILE}


def version():
    """The version of the kernel's interface; 0 without one."""
    try:
        return call("syscall", CREATE, None, 0, VERSION)
    except (AttributeError, OSError):
        return 0


def restrict(rules, abi):
    """Lay a layer on this process.

    Parameters
    ----------
    rules : dict from path to what may be done with it; nothing else may be opened
    abi : int, version of the interface
    """
    files, networks, scopes = ((1 << count) - 1 for count in RIGHTS.get(abi, NEWEST))
    known = struct.pack("=QQQ", files, networks, scopes)[:8 * (1 + (abi > 3) + (abi > 5))]
    ruleset = call("syscall", CREATE, known, len(known), 0)
    try:
        for path, rights in rules.items():
            _add(ruleset, path, rights & files)
        call("syscall", RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset, path, rights):
    """Add a rule; a path that is not there needs none."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= ON_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        call("syscall", ADD, ruleset, BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def package_rules(hidden):
    """Rules that let all of the standard library and of the packages be read, but what is hidden.

    Parameters
    ----------
    hidden : Path of the folder of this package; where it lies, and what leads there, stays closed
    """
    rules, folders = {}, package_folders()
    for folder in folders:
        rules[folder] = READ_DIR  # the names in it
        for entry in folder.iterdir():
            target = entry.resolve()
            ours = hidden.is_relative_to(target) or target.is_relative_to(hidden)
            if not (ours or hidden.name in entry.name or entry.name.endswith(PACKAGES)):
                rules[target] = READ
    return rules


def package_folders():
    """The folders of the standard library and of installed packages."""
    found = [sysconfig.get_paths()[kind] for kind in (
        "stdlib", "platstdlib", "purelib", "platlib")]
    found += [folder for folder in sys.path if folder.endswith(PACKAGES)]
    found += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(dict.fromkeys(path for path in map(Path.resolve, map(Path, found))
                              if path.is_dir()))


def rules_at_large(rules):
    """The few rules that allow all that the many do, and more; for the second layer."""
    folders = [path for path, rights in rules.items() if rights == READ_DIR]
    elsewhere = [path for path, rights in rules.items()
                 if rights == READ and not any(map(path.is_relative_to, folders))]
    return {**dict.fromkeys(folders + elsewhere, READ), **DEVICES}
