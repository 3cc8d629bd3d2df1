"""A method that tries to get out of its process: each way is one function.

A way that is refused raises OSError, or returns False; any other value says what it got. Each runs
in a process of its own. The trace of the run has what came of each.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import msgspec

from sslbench import MethodInfo, Problem, hookimpl
from sslbench.experiment.context.context import RunContext
from sslbench.isolation import calls
from support.hostile_methods import Constant

Way = Callable[[], object]
WAYS: dict[str, Way] = {}
#: what the attack made, by variable
CACHE, STORE, OUTSIDE = "ATTACKED_CACHE", "ATTACKED_STORE", "ATTACKED_FOLDER"
CANARY = "sslbench-attack-canary"  # a file of the attack in /dev/shm
PLANTED = b"planted"
PID = os.getpid()  # replaced by the method: the process of the plugins


def way(function: Way) -> Way:
    WAYS[function.__name__] = function
    return function


def _folder(variable: str) -> Path:
    return Path(os.environ[variable])


def _called(name: str, *arguments: Any) -> object:
    """Call the kernel by the name of a call, with arguments that do no harm.

    OSError: it refuses the call. What it says to the arguments is no refusal.
    """
    column = 1 if os.uname().machine == "aarch64" else 0
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {**calls._REFUSED, "clone3": calls._CLONE3}
    result = libc.syscall(numbers[name][column], *arguments)
    error = ctypes.get_errno() if result < 0 else 0
    if error in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        raise OSError(error, os.strerror(error))
    return f"{result} {os.strerror(error)}"


def _calling(name: str, *arguments: Any) -> None:
    WAYS[f"calls_{name}"] = lambda: _called(name, *arguments)


def _writing(name: str, path: Callable[[], Path]) -> None:
    WAYS[f"writes_{name}"] = lambda: path().open("ab").close()  # nothing else comes of it


for _name, _arguments in {
    "shmget": (4711, 0, 0o600), "msgget": (4711, 0), "semget": (4711, -1, 0),
    "mq_open": (b"planted", 0, 0, None), "memfd_create": (b"planted", 0),
    "add_key": (b"nothing", b"planted", None, 0, 0), "keyctl": (-1, 0, 0),
    "request_key": (b"nothing", b"planted", None, 0), "userfaultfd": (-1,), "bpf": (-1, None, 0),
    "perf_event_open": (None, 0, -1, -1, 0), "io_uring_setup": (0, None), "unshare": (0x10000000,),
    "mount": (b"none", b"/nowhere", b"nothing", 0, None), "umount2": (b"/nowhere", 0),
    "chroot": (b"/nowhere",), "pivot_root": (b"/nowhere", b"/nowhere"),
    "open_tree": (-100, b"/nowhere", 0), "clone3": (None, 0), "syslog": (-1, None, 0),
    "swapoff": (b"/nowhere",), "sethostname": (None, -1), "reboot": (0, 0, 0, None),
    "setns": (-1, 0), "fsopen": (b"nothing", 0), "process_vm_readv": (0, None, 0, None, 0, 0),
    "open_by_handle_at": (-1, None, 0), "kexec_load": (0, -1, None, -1), "iopl": (0,),
}.items():  # fmt: skip
    _calling(_name, *_arguments)

for _name, _path in {
    "kernels": lambda: next((_folder(CACHE) / "kernels").rglob("*.nbc")),
    "new_kernels": lambda: _folder(CACHE) / "kernels" / "planted",
    "digests": lambda: _folder(CACHE) / "sha256" / "planted",
    "graphs": lambda: _folder(CACHE) / "neighbors" / "planted",
    "cache_of_others": lambda: _folder(CACHE) / "plugins" / "sslbench" / "planted",
    "plugins_folder": lambda: _folder(CACHE) / "plugins" / "planted",
    "store": lambda: _folder(STORE) / "planted.json",
    "checkpoints_of_others": lambda: _folder(STORE) / "checkpoints" / "planted",
    "home": lambda: Path.home() / ".planted",
    "numba_folder": lambda: Path.home() / ".cache" / "numba" / "planted",
    "code": lambda: Path(sys.modules["sslbench"].__file__ or "").with_name("planted.py"),
    "temporary_folder": lambda: Path("/tmp", "planted"),
    "temporary_cache": lambda: Path(f"/tmp/sslbench-{os.getuid()}", "planted"),
    "text_of_the_run": lambda: Path(os.environ["TMPDIR"]).parent / "texts" / "planted",
    "folder_of_the_run": lambda: Path(os.environ["TMPDIR"]).parent / "planted",
    "core_pattern": lambda: Path("/proc/sys/kernel/core_pattern"),
    "memory_limits": lambda: Path("/sys/fs/cgroup/planted"),
    "terminal": lambda: Path("/dev/tty"),
    "output_of_the_command": lambda: Path(f"/proc/{_parents()[0]}/fd/2"),
    "score_of_the_parent": lambda: Path(f"/proc/{_parents()[0]}/oom_score_adj"),
}.items():
    _writing(_name, _path)


def _parents() -> list[int]:
    """The process of the run, the one that forked it, and the command."""
    found, pid = [], PID
    while pid > 1 and len(found) < 3:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        pid = int(next(line.split()[1] for line in status if line.startswith("PPid:")))
        found.append(pid)
    return found


@way
def link_kernels() -> object:
    kernels = _folder(CACHE) / "kernels"
    kernels.rename(kernels.with_name("moved"))
    kernels.symlink_to(_folder(OUTSIDE))
    return "moved"


@way
def input_of_the_command() -> object:
    """File 0 must be /dev/null, and no other file may be open but the pipes."""
    null = os.stat("/dev/null")
    if os.fstat(0).st_rdev != null.st_rdev or os.isatty(0):
        return "another file 0"
    files = [os.readlink(each) for each in Path(f"/proc/{PID}/fd").iterdir()]
    others = [each for each in files if not each.startswith(("/dev/null", "pipe:", "socket:"))]
    # Python reads it after a fork, to count the threads, since 3.12.
    counted = f"/proc/{PID}/stat" if sys.version_info >= (3, 12) else ""
    return [each for each in others if each != counted] or 0


@way
def types_into_the_terminal() -> object:
    """TIOCSTI: refused by its number, whatever the file is."""
    try:
        fcntl.ioctl(0, 0x5412, b"x")
    except PermissionError:
        return False
    except OSError as error:
        return f"asked the terminal: {error}"
    return "typed"


@way
def limits_of_the_parents() -> object:
    """With a limit on the size of files, the command could store nothing."""
    return [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in _parents()]


@way
def processors_of_the_parents() -> object:
    return [os.sched_setaffinity(pid, os.sched_getaffinity(pid)) for pid in _parents()]


@way
def priorities_of_the_parents() -> object:
    which = os.PRIO_PROCESS
    return [os.setpriority(which, pid, os.getpriority(which, pid)) for pid in _parents()]


@way
def priority_of_the_user() -> object:
    user = os.PRIO_USER, 4711  # nobody: an error, but another one
    try:
        return [os.setpriority(*user, 19)]
    except ProcessLookupError as error:
        return error


@way
def scheduling_of_the_parents() -> object:
    same = os.SCHED_OTHER, os.sched_param(0)
    return [os.sched_setscheduler(pid, *same) for pid in _parents()]


@way
def signals_to_the_parents() -> object:
    return [os.kill(pid, 0) for pid in _parents()]


@way
def memory_of_the_parent() -> object:
    return open(f"/proc/{_parents()[0]}/mem", "rb").close() or "opened"


@way
def files_of_the_parent() -> object:
    files = Path(f"/proc/{_parents()[0]}/fd")
    return [os.readlink(each) for each in files.iterdir()]


@way
def root_of_the_parent() -> object:
    return os.listdir(f"/proc/{_parents()[0]}/root/")


@way
def traces_the_parent() -> object:
    return _called("ptrace", -1, _parents()[0], None, None)


@way
def takes_a_file_of_the_parent() -> object:
    return _called("pidfd_getfd", os.pidfd_open(_parents()[0]), 1, 0)


@way
def unix_socket() -> object:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(_folder(OUTSIDE) / "socket"))
    return "connected"


@way
def datagrams_of_a_pair() -> object:
    a, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return a.sendto(b"x", str(_folder(OUTSIDE) / "socket"))


@way
def tcp() -> object:
    return socket.create_connection(("127.0.0.1", int(os.environ["ATTACKED_PORT"])))


@way
def udp() -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return client.sendto(b"x", ("127.0.0.1", int(os.environ["ATTACKED_PORT"])))


@way
def socket_of_the_other_interface() -> object:
    """x32: the same calls under other numbers."""
    if os.uname().machine != "x86_64":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(0x40000000 + 41, 1, 1, 0) >= 0


@way
def shared_memory_of_others() -> object:
    return Path("/dev/shm", CANARY).read_bytes()


@way
def shared_memory_that_stays() -> object:
    """Allowed where the folder is the process's alone; the digest afterwards shows that."""
    shared_memory.SharedMemory("planted", create=True, size=mmap.PAGESIZE)
    return False


@way
def device_of_its_own() -> object:
    path = Path(os.environ["TMPDIR"], "disk")
    os.mknod(path, stat.S_IFBLK | 0o600, os.stat("/").st_dev)
    return path.open("rb").read(16)


@way
def link_to_a_hidden_file() -> object:
    hidden = next(_folder(STORE).glob("*.json"), _folder(STORE) / "x.json")
    os.link(hidden, Path(os.environ["TMPDIR"], "name"))
    return "linked"


@way
def hidden_file_by_another_path() -> object:
    return Path(f"/proc/self/root{_folder(STORE)}", "gold").read_bytes()


@way
def rights_of_files() -> object:
    """No error, and no effect: the digest afterwards shows that."""
    (_folder(OUTSIDE) / "mine").chmod(0o777)
    os.utime(_folder(OUTSIDE) / "mine", (0, 0))
    return False


@way
def owner_of_files() -> object:
    return os.chown(_folder(OUTSIDE) / "mine", os.getuid(), os.getgid())


@way
def attributes_of_files() -> object:
    return os.setxattr(_folder(OUTSIDE) / "mine", "user.planted", b"x")


def outcome(function: Way) -> str:
    """What comes of a way in a process of its own: "refused: ..." or "GOT OUT: ..."."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            value = function()
            text = f"GOT OUT: {value}" if value or value == [] else "refused"
            text = "GOT OUT: None" if value is None else text
        except OSError as error:
            text = f"refused: {error.strerror or error}"
        except BaseException as error:
            text = f"ERROR: {type(error).__name__}: {error}"
        os.write(writing, text.encode()[:1000])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        text = file.read().decode()
    os.waitpid(child, 0)
    return text or "ended"


def writable() -> list[str]:
    """Folders, up to three below the root and those of the attack, in which a file can be made."""
    folders = list(_below(Path("/"), 3))
    folders += [_folder(name) for name in (CACHE, STORE, OUTSIDE)]
    folders += [Path.home(), Path.cwd(), Path(os.environ["TMPDIR"]), *Path(sys.path[-1]).parents]
    folders += [Path(os.environ["SSLBENCH_CACHE"]), Path(os.environ["TMPDIR"]).parent / "texts"]
    return sorted({str(folder) for folder in folders if _can_write(folder)})


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """A folder and those in it, as deep as this."""
    yield folder
    if depth and str(folder) not in ("/proc", "/sys"):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _below(Path(entry.path), depth - 1)


def _can_write(folder: Path) -> bool:
    try:
        path = folder / "planted"
        path.write_bytes(PLANTED)
        path.unlink()
    except OSError:
        return False
    return True


class Escaping:
    """See the module."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        way: str = ""

    uses_unlabeled = False

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Any:
        global PID
        PID = os.getpid()
        names = [params.way] if params.way else list(WAYS)
        run.trace["writable"] = writable()
        run.trace["ways"] = {name: outcome(WAYS[name]) for name in names}
        return Constant(problem.labels)


@hookimpl
def sslbench_methods() -> list[MethodInfo]:
    target = "support.ways_out:Escaping"
    return [MethodInfo(name="escaping", summary="", reference="", target=target)]
