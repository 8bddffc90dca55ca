"""What each rank did when, from the recorded spans, placed for drawing."""

import json
from dataclasses import dataclass

# Drawn in this order: work inside communication inside calls stays visible.
_KINDS = ("dist", "executor", "plan", "comm", "op")
_WIDTH = 1000.0
_SHORTEST = 0.15  # of _WIDTH / 1000: what is shorter cannot be seen


@dataclass
class Bar:
    """A span as a rectangle: left edge and width in drawing units."""

    name: str
    kind: str
    left: float
    width: float
    milliseconds: float
    bytes: int


@dataclass
class Timeline:
    """Bars of every rank; `seconds` is the drawn time."""

    ranks: list[list[Bar]]
    seconds: float
    width: float = _WIDTH


def make_timeline(traces: list[str], size: int) -> Timeline:
    """Combine the ranks' Chrome traces; all ranks of a host share one clock."""
    events = {}
    for trace in traces:
        for event in json.loads(trace)["traceEvents"]:
            if event["ph"] != "X" or event["cat"] == "gpu":
                continue  # names, counters, and the GPUs' side of what the host's spans show
            key = (event["pid"], event["ts"], event["dur"], event["name"])
            events[key] = event  # ranks that are threads of one process report the same spans
    if not events:
        return Timeline([[] for _ in range(size)], 0.0)
    start = min(event["ts"] for event in events.values())
    length = max(event["ts"] + event["dur"] for event in events.values()) - start
    scale = _WIDTH / max(length, 1e-9)
    ranks: list[list[Bar]] = [[] for _ in range(size)]
    for event in sorted(events.values(), key=lambda e: (_depth(e["cat"]), e["ts"])):
        width = event["dur"] * scale
        if event["pid"] < size and width >= _SHORTEST:
            ranks[event["pid"]].append(
                Bar(
                    event["name"],
                    event["cat"],
                    (event["ts"] - start) * scale,
                    width,
                    event["dur"] * 1e-3,
                    event["args"]["bytes"],
                )
            )
    return Timeline(ranks, length * 1e-6)


def _depth(kind: str) -> int:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
