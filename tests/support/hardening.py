"""Which defences against exploits a built program has, read from the file itself."""

import platform
import re
import subprocess


def tool(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def complaints(program):
    """The names of missing defences; an empty list: none is missing."""
    head = tool("readelf", "--file-header", "--program-headers", "--wide", program)
    dynamic = tool("readelf", "--dynamic", "--wide", program)
    symbols = set(re.findall(r"\b(__\w+_chk|__stack_chk_fail)@", tool("readelf", "--dyn-syms", "--wide", program)))
    stack = re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}(\w+)", head)
    has = {
        "PIE": re.search(r"Type:\s+DYN", head) and re.search(r"FLAGS_1\).*\bPIE\b", dynamic),
        "RELRO": "GNU_RELRO" in head,
        "BIND_NOW": re.search(r"FLAGS\).*\bBIND_NOW\b", dynamic),
        "a stack that cannot be executed": stack and "E" not in stack.group(1),
        "__stack_chk_fail": "__stack_chk_fail" in symbols,
        "checked calls of libc": len(symbols) >= 5,
        "no RPATH": not re.search(r"\((RPATH|RUNPATH)\)", dynamic),
    }
    if platform.machine() == "x86_64":
        # Debian's start files bear no property for the whole program, so the marks of its own functions are counted.
        has["targets of branches"] = tool("objdump", "--disassemble", "--section=.text", program).count("endbr64") > 500
    return [name for name, found in has.items() if not found]
