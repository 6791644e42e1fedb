"""A filter of system calls for a student's process, as the kernel's small programs (BPF).

It stops what Landlock does not: other processes, networks, signals, kernel interfaces that no
answer needs, and changes of the modes, owners and times of files. Threads stay possible.
"""

import ctypes
import errno
import platform
import struct

from lnres_utils.grading.sandboxed.kernel import call

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column below, AUDIT_ARCH

# Numbers on x86_64 and on aarch64; 0 is no call that is denied: aarch64 lacks the oldest ones.
DENIED = {
    # Other processes: begin, become, look into, change.
    "fork": (57, 0), "vfork": (58, 0), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "get_robust_list": (274, 100),
    "setns": (308, 268), "unshare": (272, 97),
    # Networks; a pair of connected sockets stays possible.
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242),
    "bind": (49, 200), "listen": (50, 201), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # What outlives or leaves the process: shared memory, queues, keys.
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "mq_notify": (244, 184), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "memfd_create": (319, 279),
    # Modes, owners, times and attributes of files, which Landlock lets everybody change.
    "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, 0),
    "fchown": (93, 55), "lchown": (94, 0), "fchownat": (260, 54), "truncate": (76, 45),
    "utime": (132, 0), "utimes": (235, 0), "futimesat": (261, 0), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "mknod": (133, 0), "mknodat": (259, 33), "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # The machine, and parts of the kernel through which others got out.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89),
    "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "quotactl": (179, 60), "vhangup": (153, 58),
    "iopl": (172, 0), "ioperm": (173, 0), "modify_ldt": (154, 0), "uselib": (134, 0),
    "personality": (135, 92), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_setup": (206, 0), "lookup_dcookie": (212, 18), "vmsplice": (278, 75),
    "seccomp": (317, 277), "capset": (126, 91),
}  # fmt: skip

# From here on the numbers are the same everywhere: what is not listed is told not to exist.
NEW = 424
NEW_ALLOWED = {
    "close_range": 436, "openat2": 437, "faccessat2": 439, "epoll_pwait2": 441,
    "futex_waitv": 449, "cachestat": 451, "futex_wake": 454, "futex_wait": 455,
    "futex_requeue": 456, "mseal": 462,
}  # fmt: skip

OWN = "own"  # stands for this process's id
# Allowed if the argument of that index is one of the values.
ALLOWED_IF = {
    "kill": ((62, 129), 0, (OWN,)), "tgkill": ((234, 131), 0, (OWN,)),
    "prlimit64": ((302, 261), 0, (0, OWN)), "sched_setaffinity": ((203, 122), 0, (0,)),
    "sched_setparam": ((142, 118), 0, (0,)), "sched_setscheduler": ((144, 119), 0, (0,)),
    "sched_setattr": ((314, 274), 0, (0,)),
    "socketpair": ((53, 199), 0, (1,)),  # AF_UNIX
}  # fmt: skip
# Denied if it is: who gets a file's signals, who waits for it, what is typed on a terminal, the end
# with the parent.
DENIED_IF = {
    # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
    "fcntl": ((72, 25), 1, (8, 10, 15, 1024, 1026)),
    "ioctl": ((16, 29), 1, (0x8901, 0x8902, 0x5412)),  # FIOSETOWN, SIOCSPGRP, TIOCSTI
    "prctl": ((157, 167), 0, (1, 4, 0x59616D61)),  # PR_SET_PDEATHSIG, _DUMPABLE, _PTRACER
}
CLONE, CLONE_THREAD = (56, 220), 0x10000
SENDTO, ADDRESS = (44, 206), 4

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # of BPF
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they lie in what a program looks at
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
INSTRUCTION = struct.Struct("=HBBI")
PR_SET_SECCOMP, MODE_FILTER = 22, 2


def known():
    """Whether the numbers of this machine's system calls are listed here."""
    return platform.machine() in MACHINES and struct.calcsize("P") == 8


def restrict(own):
    """Filter the system calls of this process, whose id is ``own``, from now on."""
    code = program(own, *MACHINES[platform.machine()])
    words = ctypes.create_string_buffer(code)
    header = struct.pack("HP", len(code) // INSTRUCTION.size, ctypes.addressof(words))
    call("prctl", PR_SET_SECCOMP, MODE_FILTER, header)


def program(own, column, architecture):
    """The filter as bytes.

    Parameters
    ----------
    own : int, id of the process
    column : int, of the tables above
    architecture : int, the only one whose calls are let through
    """
    allow, deny = [(RETURN, 0, 0, ALLOW)], [(RETURN, 0, 0, ERROR | errno.EPERM)]
    absent = [(RETURN, 0, 0, ERROR | errno.ENOSYS)]
    lines = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL),
             (LOAD, 0, 0, NUMBER)]
    lines += _block((AT_LEAST, NEW), _one_of(NEW_ALLOWED.values(), allow, absent))
    for numbers, index, values in ALLOWED_IF.values():
        values = [own if value == OWN else value for value in values]
        lines += _block((EQUAL, numbers[column]), _argument(index) + _one_of(values, allow, deny))
    for numbers, index, values in DENIED_IF.values():
        lines += _block((EQUAL, numbers[column]), _argument(index) + _one_of(values, deny, allow))
    lines += _block((EQUAL, CLONE[column]), _argument(0) + [
        (ANY_BIT, 0, 1, CLONE_THREAD), *allow, *deny])
    lines += _block((EQUAL, SENDTO[column]), [
        *_argument(ADDRESS), (EQUAL, 0, 3, 0), *_argument(ADDRESS, half=4), (EQUAL, 0, 1, 0),
        *allow, *deny])
    denied = [numbers[column] for numbers in DENIED.values() if numbers[column]]
    lines += _one_of(denied, deny, allow)
    return b"".join(INSTRUCTION.pack(*line) for line in lines)


def _argument(index, half=0):
    """Load the lower (or, 4, the upper) half of an argument: both machines are little-endian."""
    return [(LOAD, 0, 0, ARGUMENTS + 8 * index + half)]


def _block(condition, lines):
    """Lines that are passed over where the condition is not met. They end by a return."""
    operation, value = condition
    return [(operation, 0, len(lines), value), *lines]


def _one_of(values, then, otherwise):
    """``then`` if what is loaded is one of the values; both are one return."""
    values = list(values)
    tests = [(EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [*tests, *otherwise, *then]
