#!/usr/bin/env python3
"""Checks the house's dependency rule: a file includes its own layer and the layers below it.

Also: no files include each other in a circle (a header and its source count as one file),
third-party headers stand only in the file that adapts them, `cost/` and `plan/` know neither
communicators nor devices, and no file grows past 500 lines.

Installed are the public headers (src/public_headers.txt), which users include, and their parts
(src/public_parts.txt): what these include, by themselves and through others, no more and no fewer.
All are plain C++20. `--installed FOLDER` compares a folder of installed headers with the lists.

Prints one line a finding, as file:line: what; exit code 1 when there is any.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

# Bottom to top; a layer may include itself and every layer before it. The pattern is matched
# against the path below src/ without its ending, the first that fits wins.
LAYERS = (
    ("core", "cuop/core/*"),
    ("memory", "cuop/memory/*"),
    ("backend", "cuop/backend/*"),
    ("jit", "cuop/jit/*"),
    ("tune", "cuop/tune/*"),
    ("ops", "cuop/ops/*"),
    ("operators", "cuop/operators/*"),
    ("dist/comm", "cuop/dist/comm/*"),
    ("dist/cost", "cuop/dist/cost/*"),
    ("dist/plan", "cuop/dist/plan/*"),
    ("dist/exec", "cuop/dist/exec/*"),
    ("dist/algo", "cuop/dist/algo/*"),
    ("dist", "cuop/dist/*"),  # agree, mesh, sharding, dist_tensor
    ("executor", "cuop/executor/*"),
    ("system", "cuop/system/*"),
)
ORDER = (
    *("core", "memory", "backend", "jit", "tune", "ops", "operators", "dist/comm", "dist"),
    *("dist/cost", "dist/plan", "dist/exec", "dist/algo"),
    *("executor", "system"),
)

# Planners are pure functions: what may stand below them all the same does not.
FORBIDDEN = {
    "dist/cost": ("memory", "backend", "jit", "ops", "operators", "dist/comm"),
    "dist/plan": ("memory", "backend", "jit", "ops", "operators", "dist/comm"),
}

# Third-party headers and the files that adapt them. A header that is neither here, nor of the C++
# or POSIX library, is reported: give it an adapter and a line.
ADAPTERS = {
    "mpi.h": ("src/cuop/dist/comm/mpi_module.cpp", "benchmarks/rank_peers.cpp"),
    "netdb.h": ("src/cuop/dist/comm/socket_link.cpp",),
    "arpa/*": ("src/cuop/dist/comm/datagrams.cpp",),
    "ifaddrs.h": ("src/cuop/dist/comm/datagrams.cpp",),
    "net/*": ("src/cuop/dist/comm/datagrams.cpp",),
    "netinet/*": ("src/cuop/dist/comm/socket_link.cpp", "src/cuop/dist/comm/datagrams.cpp"),
    "poll.h": ("src/cuop/dist/comm/socket_link.cpp", "src/cuop/dist/comm/heartbeat.cpp"),
    "cxxabi.h": ("python/src/thread_end.cpp", "src/cuop/core/of_thread.cpp"),
    "*dnnl*": ("src/cuop/backend/cpu/dnn*.cpp", "benchmarks/conv_onednn.cpp"),
    "omp.h": ("src/cuop/backend/cpu/dnn_module.cpp",),
    "cblas*.h": ("src/cuop/backend/cpu/blas*.cpp",),
    "fftw3*.h": ("src/cuop/backend/cpu/fft*.cpp", "benchmarks/rank_peers.cpp"),
    "cuda*.h": ("src/cuop/backend/cuda/*.cpp",),
    "nv*.h": ("src/cuop/backend/cuda/*.cpp",),
    "cu*.h": ("src/cuop/backend/cuda/*.cpp",),
    "nanobind/*": ("python/src/*",),
    "Python.h": ("python/src/*",),
    "structmember.h": ("python/src/calls.cpp",),  # Python 3.11 keeps PyMemberDef there
    "gtest/*": ("tests/*",),
    "gmock/*": ("tests/*",),
    "quadmath.h": ("tests/jit/true_functions.h",),
    "benchmark/*": ("benchmarks/*",),
    "cpuid.h": ("src/cuop/backend/cpu/gathers.h",),
    "immintrin.h": ("src/cuop/*.cpp", "src/cuop/*_isa*.h", "src/cuop/*_kernels.h", "benchmarks/*"),
}
STANDARD = set(
    """algorithm any array atomic barrier bit bitset cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits cmath compare complex concepts condition_variable csignal cstdarg cstddef
    cstdint cstdio cstdlib cstring ctime cwchar deque exception execution filesystem
    forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream
    iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional
    ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
    source_location span sstream stack stdexcept stop_token streambuf string string_view
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
    valarray variant vector version""".split()
)
POSIX = set(
    """dirent.h dlfcn.h errno.h fcntl.h link.h malloc.h pthread.h sched.h signal.h spawn.h
    unistd.h""".split()
)

SOURCE_ENDINGS = {".h", ".cpp", ".cuh", ".py", ".sh"}
LINE_LIMIT = 500
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b")


class Finding(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def layer_of(include: str) -> str | None:
    """The layer of a path such as cuop/ops/fft/fft.h; None for one that has none."""
    stem = include.rsplit(".", 1)[0]
    return next((name for name, pattern in LAYERS if fnmatch(stem, pattern)), None)


HOUSE = Path(__file__).resolve().parent.parent
PUBLIC_LIST = "src/public_headers.txt"
PARTS_LIST = "src/public_parts.txt"
UMBRELLA = "cuop/cuop.h"  # written by CMake


def names_in(root: Path, header_list: str) -> list[str]:
    """The headers that a list below the root names; none where there is no list."""
    path = root / header_list
    return path.read_text("utf-8").splitlines() if path.is_file() else []


INSTALLED = {*names_in(HOUSE, PUBLIC_LIST), *names_in(HOUSE, PARTS_LIST)}


def is_installed(path: str) -> bool:
    """Whether this header is installed; the path may begin with src/."""
    return path.removeprefix("src/") in INSTALLED


def check_layer(path: str, include: str) -> str | None:
    """What is wrong with a file below src/ including a header of the house."""
    own, other = layer_of(path.removeprefix("src/")), layer_of(include)
    if own is None:
        return f"stands in no layer; the layers are {' < '.join(ORDER)}"
    if other is None:
        return f"includes {include}, which is in no layer"
    if ORDER.index(other) > ORDER.index(own):
        return f"layer {own} includes {include} of the higher layer {other}"
    if other in FORBIDDEN.get(own, ()):
        return f"layer {own} is pure and includes {include} of layer {other}"
    return None


def check_foreign(path: str, include: str) -> str | None:
    """What is wrong with a file including a header that is not the house's."""
    if include in STANDARD:
        return None
    if include in POSIX or include.startswith(("sys/", "linux/")):
        if is_installed(path):
            return f"installed header includes <{include}> of the system; include it in a source"
        return None
    for pattern, homes in ADAPTERS.items():
        if fnmatch(include, pattern):
            if any(fnmatch(path, home) for home in homes):
                return None
            return f"third-party header <{include}> belongs into {' or '.join(homes)}"
    return f"<{include}> is no C++20 or POSIX header and has no adapter in tools/check_layers.py"


def check_text(path: str, text: str) -> Iterator[Finding]:
    """All findings of one file, given its path below the root."""
    lines = text.splitlines()
    if len(lines) > LINE_LIMIT:
        yield Finding(path, len(lines), f"has {len(lines)} lines; {LINE_LIMIT} are the limit")
    if not path.endswith((".h", ".cpp", ".cuh")):
        return
    if path.endswith(".h") and "#pragma once" not in text:
        yield Finding(path, 1, "has no #pragma once")
    in_library = path.startswith("src/")
    for number, line in enumerate(lines, 1):
        if in_library and is_installed(path) and CONDITIONAL.match(line):
            yield Finding(path, number, "installed header has a preprocessor condition")
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, include = match.groups()
        wrong = None
        if quote == "<":
            wrong = check_foreign(path, include)
        elif in_library:
            wrong = check_layer(path, include)
        if wrong:
            yield Finding(path, number, wrong)


def headers_needed(root: Path, headers: list[str]) -> dict[str, tuple[str, int]]:
    """What these headers include, by themselves and through others: each with one place of it."""
    places: dict[str, tuple[str, int]] = {}
    queue = list(headers)
    for header in queue:
        lines = (root / "src" / header).read_text("utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match and match[2] not in places and (root / "src" / match[2]).is_file():
                places[match[2]] = (f"src/{header}", number)
                queue.append(match[2])
    return places


def check_lists(root: Path) -> Iterator[Finding]:
    """What is wrong with the lists of headers.

    Names that are no headers, out of order or in both lists; headers that public ones need and no
    list names; parts that no public one needs.
    """
    headers: dict[str, list[str]] = {}
    for header_list in (PUBLIC_LIST, PARTS_LIST):
        names, headers[header_list] = names_in(root, header_list), []
        for number, name in enumerate(names, 1):
            if number > 1 and name <= names[number - 2]:
                yield Finding(header_list, number, f"{name} is not in alphabetical order")
            if name.endswith(".h") and (root / "src" / name).is_file():
                headers[header_list].append(name)
            else:
                yield Finding(header_list, number, f"{name} is no header below src/")

    public, parts = headers[PUBLIC_LIST], headers[PARTS_LIST]
    needed = headers_needed(root, public)
    for name in sorted(needed.keys() - {*public, *parts}):
        what = f"public headers need {name}, which is internal: {PARTS_LIST} does not name it"
        yield Finding(*needed[name], what)
    for number, name in enumerate(names_in(root, PARTS_LIST), 1):
        if name in public:
            yield Finding(PARTS_LIST, number, f"{name} is public already")
        elif name in parts and name not in needed:
            yield Finding(PARTS_LIST, number, f"{name} is needed by no public header")


def check_installed(root: Path, folder: Path) -> Iterator[Finding]:
    """What a folder of installed headers has beside those of the lists, and what it lacks.

    Also what cuop.h includes beside the public headers, and which of them it forgets.
    """
    public = set(names_in(root, PUBLIC_LIST))
    wanted = {UMBRELLA, *public, *names_in(root, PARTS_LIST)}
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    for name in sorted(found - wanted):
        yield Finding(name, 1, "is installed, but no list names it")
    for name in sorted(wanted - found):
        yield Finding(name, 1, "is not installed")
    if UMBRELLA not in found:
        return
    lines = (folder / UMBRELLA).read_text("utf-8").splitlines()
    included = {m[2] for m in map(INCLUDE.match, lines) if m}
    for name in sorted(included - public):
        yield Finding(UMBRELLA, 1, f"includes {name}, which is not public")
    for name in sorted(public - included):
        yield Finding(UMBRELLA, 1, f"does not include {name}")


def includes_of(root: Path) -> dict[str, set[str]]:
    """What each file below src/ includes, by stems: x.h, x.cuh and x.cpp are one file."""
    graph: dict[str, set[str]] = {}
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cuh", ".cpp"}:
            continue
        stem = path.relative_to(root / "src").with_suffix("").as_posix()
        included = graph.setdefault(stem, set())
        for line in path.read_text("utf-8").splitlines():
            match = INCLUDE.match(line)
            if match and (root / "src" / match[2]).is_file():
                included.add(match[2].rsplit(".", 1)[0])
        included.discard(stem)
    return graph


def check_circles(root: Path) -> Iterator[Finding]:
    """One finding for each file that includes itself through others, with the shortest way."""
    graph = includes_of(root)
    reported: set[str] = set()
    for start in graph:
        ways, queue = {start: [start]}, [start]
        for file in queue:
            if start in graph.get(file, ()) and start not in reported:
                circle = ways[file]
                reported.update(circle)
                yield Finding(f"src/{start}", 1, "circle: " + " -> ".join([*circle, start]))
                break
            for other in sorted(graph.get(file, ())):
                if other not in ways:
                    ways[other] = [*ways[file], other]
                    queue.append(other)


def find_files(root: Path) -> Iterator[Path]:
    for folder in ("src", "python", "tests", "benchmarks", "examples", "tools"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_ENDINGS and "__pycache__" not in path.parts:
                yield path


def check_tree(root: Path) -> list[Finding]:
    findings = list(check_circles(root))
    findings += check_lists(root)
    for path in find_files(root):
        findings += check_text(path.relative_to(root).as_posix(), path.read_text("utf-8"))
    return findings


def report(checked: str, findings: list[Finding]) -> int:
    """Prints the findings and how many there are; the command's exit code."""
    for finding in findings:
        print(finding)
    print(f"{checked}, {len(findings)} findings")
    return 1 if findings else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the house's dependency rule.")
    parser.add_argument("root", type=Path, nargs="?", default=HOUSE, help="of the source tree")
    parser.add_argument("--installed", type=Path, metavar="FOLDER", help="check this one instead")
    arguments = parser.parse_args()
    if arguments.installed:
        findings = list(check_installed(arguments.root, arguments.installed))
        files = sum(1 for path in arguments.installed.rglob("*") if path.is_file())
    else:
        findings = check_tree(arguments.root)
        files = sum(1 for _ in find_files(arguments.root))
    return report(f"check_layers: {files} files", findings)


if __name__ == "__main__":
    sys.exit(main())
