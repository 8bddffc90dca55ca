"""Plants mistakes, builds them once, runs the nearest tests on each, lists those that nobody saw."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from tools.mutants import choice, plant, trial
from tools.mutants.choice import AREAS, Mutant

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutants"
TREE = FOLDER / "tree"
RESULTS = FOLDER / "results.json"  # by a mistake's id; written after each
TIMES = FOLDER / "times.json"  # of the tests without a mistake


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mistakes to plant")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, of " + ", ".join(AREAS))
    parser.add_argument("--seed", type=int, default=1, help="another choice of mistakes")
    parser.add_argument("--jobs", type=int, default=2, help="tests that run side by side")
    parser.add_argument("--preset", default="release", help="of CMakePresets.json, to build with")
    parser.add_argument(
        "--continue",
        dest="keep",
        choices=("all", "caught"),
        help="keep what an interrupted run found, or only its catches, to try the survivors again",
    )
    options = parser.parse_args()
    options.areas = options.only.split(",")
    if unknown := set(options.areas) - set(AREAS):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(AREAS)}")
    if options.count < 1:
        parser.error(f"--count: {options.count} is less than 1")
    return options


def planted(options: argparse.Namespace) -> list[Mutant]:
    """The mistakes of this run, built: a quarter more are tried, for some do not compile."""
    more = options.count + options.count // 4
    chosen = choice.choose(ROOT, more, options.areas, options.seed)
    TREE.mkdir(parents=True, exist_ok=True)
    mutants = plant.copy_tree(ROOT, TREE, plant.without_broken(TREE, chosen))
    print(f"planted {len(mutants)}, building {TREE} ...", flush=True)
    mutants = plant.build(ROOT, TREE, options.preset, mutants)
    result: list[Mutant] = []
    for area, share in choice.shares(options.count, options.areas).items():
        result += [m for m in mutants if m.area == area][:share]
    return result


def try_all(
    place: trial.Place, mutants: list[Mutant], jobs: int, known: dict, keeps_times: bool
) -> None:
    """Fills in the outcomes, and writes each down as soon as it is known."""
    waiting = [m for m in mutants if m.id not in known]
    for mutant in mutants:
        if mutant.id in known:
            mutant.outcome, mutant.seen_by, mutant.seconds = known[mutant.id]
    if not waiting:
        return
    before = json.loads(TIMES.read_text()) if keeps_times and TIMES.exists() else {}
    place.left_out.update(before.pop("left out", []))
    times = trial.without_mistake(place, sorted({m.file for m in waiting}), jobs, before)
    TIMES.write_text(json.dumps({**times.seconds, "left out": sorted(place.left_out)}, indent=0))
    for name in sorted(place.left_out):
        print(f"left out, for it fails without a mistake: {name}", flush=True)
    print(f"{len(waiting)} to try", flush=True)
    lock = Lock()

    def judge(mutant: Mutant) -> None:
        start = time.monotonic()
        answer = trial.look(place, mutant.number, mutant.file, times)
        if answer.outcome == "unclear":
            answer = trial.look(place, mutant.number, mutant.file, times)
        mutant.outcome, mutant.seen_by = answer.outcome, answer.seen_by
        mutant.seconds = round(time.monotonic() - start, 1)
        with lock:
            known[mutant.id] = (mutant.outcome, mutant.seen_by, mutant.seconds)
            draft = RESULTS.with_suffix(".draft")
            draft.write_text(json.dumps(known, indent=0))
            draft.replace(RESULTS)
            print(f"{mutant.number:4} {mutant.outcome:8} {mutant.seconds:5} s  {mutant.file}:"
                  f"{mutant.line + 1}  {mutant.what}  {mutant.seen_by}", flush=True)  # fmt: skip

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(judge, waiting))


def main() -> None:
    options = arguments()
    mutants = planted(options)
    known: dict = {}
    if options.keep and RESULTS.exists():
        kept = ("caught",) if options.keep == "caught" else ("caught", "survived")
        before = json.loads(RESULTS.read_text())
        known = {key: found for key, found in before.items() if found[0] in kept}
    try_all(
        trial.Place(ROOT, TREE, options.preset), mutants, options.jobs, known, bool(options.keep)
    )
    (FOLDER / "mutants.json").write_text(json.dumps([asdict(m) for m in mutants], indent=1))

    print("\nNot caught:")
    for m in mutants:
        if m.outcome != "caught":
            print(f"  {m.number} {m.outcome} {m.file}:{m.line + 1}: {m.what}")
            print(f"    {m.original.strip()}  {m.seen_by}")
    for area in options.areas:
        mine = [m for m in mutants if m.area == area]
        caught = sum(m.outcome == "caught" for m in mine)
        print(f"{area}: {caught} of {len(mine)} caught")
    caught = sum(m.outcome == "caught" for m in mutants)
    print(f"{caught} of {len(mutants)} caught ({100 * caught / max(1, len(mutants)):.0f} %)")
    sys.exit(0 if caught >= 0.9 * len(mutants) else 1)


if __name__ == "__main__":
    main()
