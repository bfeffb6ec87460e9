"""What processes use of the machine: processor time and memory, read from /proc."""

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12  # fields of /proc/PID/stat, counted from the one behind the command's closing bracket


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used so far, all threads, in the kernel too."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    """Resident memory in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def child_of(pid: int) -> int:
    """The one child that a process has."""
    found = [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in _children(task)]
    (child,) = found
    return child


def _children(task: Path) -> list[str]:
    return (task / "children").read_text(encoding="ascii").split()


class Meter:
    """Processor time of named processes since it was made."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._before = self._now()

    def ms_per(self, count: int) -> dict[str, float]:
        """Milliseconds for each of `count` units of work, by process."""
        now = self._now()
        return {name: (now[name] - before) * 1_000 / count for name, before in self._before.items()}

    def _now(self) -> dict[str, float]:
        return {name: cpu_s(pid) for name, pid in self._pids.items()}
