"""On what a time was taken: a time without it says nothing."""

import platform
import re
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def processor():
    """The name of this machine's CPU, as far as the system tells it."""
    text = _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.exists() else ""
    found = re.search(r"^model name\s*:\s*(.*\S)", text, re.MULTILINE)
    name = found[1] if found else platform.processor() or platform.machine()
    return name or "unknown CPU"
