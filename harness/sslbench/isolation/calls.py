"""System calls that the process of the plugins gives up, by a filter of the kernel (seccomp).

Landlock restricts what is reached by a path. The kernel has other ways out of a process: sockets,
shared memory, keys, limits and priorities of other processes, their memory, and the terminal.

The filter is a program of classic BPF (kernel documentation: userspace-api/seccomp_filter) that
looks at the number of a call and at its arguments, not at what they point to. So there are no
sockets at all but pairs of connected ones, which `multiprocessing` needs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # places in what the program looks at
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # calls of another interface of x86-64

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
#: refused with all arguments: number on x86-64 (-1 = not there) and on aarch64
_REFUSED = {
    # memory and files of other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # what outlives the process, and memory that counts for nobody
    "shmget": (29, 194), "shmctl": (31, 195), "shmat": (30, 196), "semget": (64, 190),
    "semctl": (66, 191), "semtimedop": (220, 192), "semop": (65, 193), "msgget": (68, 186),
    "msgctl": (71, 187), "msgrcv": (70, 188), "msgsnd": (69, 189), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # sockets
    "socket": (41, 198),
    # other views of the files
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "swapon": (167, 224), "swapoff": (168, 225),
    # owners and attributes of files, which Landlock leaves open
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    # the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "iopl": (172, -1),
    "ioperm": (173, -1), "syslog": (103, 116), "acct": (163, 89), "vhangup": (153, 58),
    # the machine
    "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
}  # fmt: skip
#: without effect and without an error, since copying a file needs them: Landlock leaves them open
_WITHOUT_EFFECT = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
}  # fmt: skip
#: their first argument is a process, 0 = the caller
_OF_A_PROCESS = {
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
}  # fmt: skip
_SET_PRIORITY, _SET_IO_PRIORITY = (141, 140), (251, 30)
_OF_ONE_PROCESS = {_SET_PRIORITY: 0, _SET_IO_PRIORITY: 1}  # meaning of their second argument
_IOCTL, _SOCKETPAIR, _CLONE, _CLONE3 = (16, 29), (53, 199), (56, 220), (435, 435)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # type into a terminal
_SOCKET_TYPE, _STREAM, _SEQUENCE = 0xF, 1, 5
_NEW_NAMESPACES = 0x7E020000  # flags of clone

Program = list[tuple[int, int, int, int]]  # code, distance of the jump if true, if false, value


def refuse_calls() -> bool:
    """Refuse them in this process and in all that it starts, for good; False: not available.

    The process must have given up new privileges (PR_SET_NO_NEW_PRIVS).
    """
    known = _ARCHITECTURES.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return False
    program = _program(*known, os.getpid())
    code = b"".join(struct.pack("=HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    return bool(ctypes.CDLL(None).prctl(_SET_SECCOMP, _MODE_FILTER, described, 0, 0) == 0)


def _program(architecture: int, column: int, pid: int) -> Program:
    refuse, allow = (_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    own = [(_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, pid), refuse, allow]
    program: Program = [
        (_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), refuse,
        (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), refuse,
    ]  # fmt: skip

    def when(call: tuple[int, int], *then: tuple[int, int, int, int]) -> None:
        """Do this for a call; it must end with a return."""
        if call[column] >= 0:
            program.extend([(_EQUAL, 0, len(then), call[column]), *then])

    for call in _REFUSED.values():
        when(call, refuse)
    for call in _WITHOUT_EFFECT.values():
        when(call, (_RETURN, 0, 0, _REFUSE))
    for call in _OF_A_PROCESS.values():
        when(call, _argument(0), *own)
    for call, of_one in _OF_ONE_PROCESS.items():
        when(call, _argument(0), (_EQUAL, 1, 0, of_one), refuse, _argument(1), *own)
    when(_IOCTL, _argument(1), (_EQUAL, 1, 0, _TIOCSTI), (_EQUAL, 0, 1, _TIOCLINUX), refuse, allow)
    types = [(_AND, 0, 0, _SOCKET_TYPE), (_EQUAL, 2, 0, _STREAM), (_EQUAL, 1, 0, _SEQUENCE)]
    when(_SOCKETPAIR, _argument(1), *types, refuse, allow)
    when(_CLONE, _argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), refuse, allow)
    # Its flags are in memory. The C library uses clone where this one does not exist.
    when(_CLONE3, (_RETURN, 0, 0, _REFUSE | errno.ENOSYS))
    return [*program, allow]


def _argument(number: int) -> tuple[int, int, int, int]:
    """Load the lower half of an argument: the kernel ignores the upper half of these."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * number)
