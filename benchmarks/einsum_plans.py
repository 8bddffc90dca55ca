"""Products of many tensors over ranks: orders and splits planned together, beside NumPy's order split naively.

    mpirun --bind-to none -np 2 python benchmarks/einsum_plans.py --table table.md --json raw.json
    python benchmarks/einsum_plans.py --ranks 2 --device cpu --scale 0.5

"Joint" is one call of dist.einsum. The others take numpy.einsum_path's order (its default, "greedy"), pair by pair.
"Naive" is what one writes by hand: each result is split along its first index, for which its operands are split
along that index or, without it, made whole on all ranks. "Pairs" are planned calls each, their results in rows.
"Rooted": operands and result on rank 0. "Sharded": operands in rows over the ranks, the result where it is made.
Milliseconds of a call and its wait on the slowest rank, all starting together; medians of several in turns, after
two first ones.
"""

import json
import math
import statistics
import time
from pathlib import Path

import numpy as np
from launched import arguments, on_ranks, origin, slowest, tell
from plan_choices import noise

import cuop
from cuop import dist

#: name, equation, the sizes of its indices.
CASES = [
    ("matrix chain, thin inner", "ab,bc,cd,de,ef->af", "a4096 b64 c4096 d64 e4096 f64"),
    ("matrix chain, wide", "ab,bc,cd->ad", "a6144 b6144 c64 d6144"),
    ("matrix chain, uneven", "ab,bc,cd,de->ae", "a4000 b200 c6000 d300 e4000"),
    ("product with its transpose", "ni,nj->ij", "n65536 i2048 j2048"),
    ("MPS overlap", "pa,pb,aqc,bqd,crk,drl,ks,ls->", "p16 q16 r16 s16 a512 b512 c512 d512 k512 l512"),
    ("DMRG, two sites", "awb,wstv,vurk,ckd,btrd->asuc", "a768 b768 c768 d768 w5 v5 k5 s2 t2 u2 r2"),
    ("DMRG, one site", "awb,wstv,cvd,btd->asc", "a1024 b1024 c1024 d1024 w8 v8 s4 t4"),
    ("ring of tensors", "axb,byc,czd,dwa->xyzw", "a40 b40 c40 d40 x48 y48 z48 w48"),
    ("Tucker, same sizes", "ijk,ai,bj,ck->abc", "i320 j320 k320 a320 b320 c320"),
    ("Tucker, small ranks", "ijk,ia,jb,kc->abc", "i512 j512 k512 a32 b32 c32"),
    ("Tucker, expanded", "abc,ia,jb,kc->ijk", "i512 j512 k512 a32 b32 c32"),
    ("MTTKRP", "ijk,jr,kr->ir", "i512 j512 k512 r64"),
    ("CP, expanded", "ir,jr,kr->ijk", "i512 j512 k512 r64"),
    ("two matrices on a cube", "ijk,jl,km->ilm", "i384 j384 k384 l384 m384"),
    ("coupled clusters", "klcd,ikac,jlbd->ijab", "k24 l24 i24 j24 a64 b64 c64 d64"),
    ("integral transform", "pqrs,pi,qj,ra,sb->ijab", "p72 q72 r72 s72 i24 j24 a48 b48"),
    ("density fitting", "iaQ,jbQ->iajb", "i32 a128 j32 b128 Q512"),
    ("exchange", "Qpr,rs,Qqs->pq", "Q384 p384 r384 q384 s384"),
    ("tree of tensors", "abp,cdq,pqr,rx->abcdx", "a24 b24 c24 d24 p192 q192 r64 x24"),
    ("Kronecker factors", "abk,ia,jb->ijk", "a256 b256 k512 i256 j256"),
    ("attention, scores", "bqhd,bkhd->bhqk", "b8 q1024 k1024 h16 d64"),
    ("attention, values", "bhqk,bkhd->bqhd", "b8 q1024 k1024 h16 d64"),
    ("attention, linear", "bqhd,bkhd,bkhe->bqhe", "b8 q2048 k2048 h16 d64 e64"),
    ("attention of projections", "bqd,dhe,bkf,fhe->bhqk", "b8 q1024 k1024 d512 f512 h8 e64"),
    ("projection to heads", "bld,dhe->blhe", "b8 l2048 d1024 h16 e64"),
    ("projection from heads", "bqhd,hde->bqe", "b8 q2048 h16 d64 e1024"),
    ("low-rank adapter", "bld,dr,rk->blk", "b8 l2048 d4096 r16 k4096"),
    ("two layers", "bld,df,fk->blk", "b4 l1024 d1024 f4096 k1024"),
    ("bilinear layer", "bi,oij,bj->bo", "b4096 i160 o160 j160"),
    ("quadratic forms", "bi,ij,bj->b", "b65536 i1024 j1024"),
    ("mixture of experts", "te,td,edf->tf", "t4096 e8 d1024 f1024"),
]  # fmt: skip


def shapes_of(equation, sizes, scale):
    """Of the operands; each size scaled, at least 2."""
    found = {part[0]: max(2, round(int(part[1:]) * scale)) for part in sizes.split()}
    return [tuple(found[index] for index in term) for term in equation.split("->")[0].split(",")]


def pairs_of(equation, shapes):
    """NumPy's order: positions of two operands and the equation of each pair, whose result is appended."""
    inputs, output = equation.split("->")
    terms = inputs.split(",")
    empty = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    steps = []
    for positions in np.einsum_path(equation, *empty, optimize="greedy")[0][1:]:
        taken = [terms.pop(position) for position in sorted(positions, reverse=True)]
        rest = set("".join(terms)) | set(output)
        kept = "".join(dict.fromkeys(index for term in taken for index in term if index in rest))
        result = output if not terms else kept
        steps.append((sorted(positions, reverse=True), f"{','.join(taken)}->{result}"))
        terms.append(result)
    return steps


def rows(comm, ndim):
    """In rows over the ranks; a tensor without dimensions is on all of them."""
    spec = dist.P(*(["r"] + [None] * (ndim - 1))[:ndim])
    return dist.Sharding(dist.Mesh.line(comm.size), spec)


class Contraction:
    """One equation over ranks, in all three ways, on the calling rank."""

    def __init__(self, comm, kind, equation, shapes, device):
        self.comm, self.kind, self.equation = comm, kind, equation
        self.pairs = pairs_of(equation, shapes)
        on_root = comm.rank == 0
        self.operands = [
            noise(shape, "float32", device, i) if on_root else None
            for i, shape in enumerate(shapes)
        ]
        if kind == "sharded":
            self.operands = self.spread()

    def spread(self):
        return [
            (each := dist.DistTensor.from_root(self.comm, x)).redistribute(
                rows(self.comm, each.ndim)
            )
            for x in self.operands
        ]

    def joint(self):
        if self.kind == "rooted":
            return dist.einsum_from_root(self.comm, self.equation, *self.operands)
        return dist.einsum(self.equation, *self.operands)

    def in_order(self, multiply):
        """By NumPy's order, multiply(equation, x, y) for each pair of it."""
        terms = self.spread() if self.kind == "rooted" else list(self.operands)
        for positions, equation in self.pairs:
            taken = [terms.pop(position) for position in positions]
            terms.append(multiply(equation, *taken))
        is_parted = isinstance(terms[0], dist.DistTensor)
        return terms[0].gather() if self.kind == "rooted" and is_parted else terms[0]

    def pairs_planned(self):
        def multiply(equation, *operands):
            wanted = rows(self.comm, len(equation.split("->")[1]))
            return dist.einsum(equation, *operands, output=wanted)

        return self.in_order(multiply)

    def naive(self):
        def part(x, term, split):
            if split not in term:
                return x.gather_all()
            spec = [None] * x.ndim
            spec[term.index(split)] = "r"
            return x.redistribute(
                dist.Sharding(dist.Mesh.line(self.comm.size), dist.P(*spec))
            ).local

        def multiply(equation, *operands):
            terms, result = equation.split("->")
            split = result[:1] or "-"  # a number is computed on all
            parts = [
                part(x, term, split) for x, term in zip(operands, terms.split(","), strict=True)
            ]
            local = cuop.einsum(equation, *parts)
            return dist.DistTensor.from_parts(self.comm, local) if result else local

        return self.in_order(multiply)

    def seconds(self, way):
        self.comm.barrier()
        begin = time.perf_counter()
        way()
        cuop.synchronize()
        return time.perf_counter() - begin


def measured(comm, kind, case, scale, device, rounds):
    """On rank 0 the milliseconds of all ways, the strategy taken and the largest difference."""
    name, equation, sizes = case
    shapes = shapes_of(equation, sizes, scale)
    contraction = Contraction(comm, kind, equation, shapes, device)
    ways = [contraction.joint, contraction.naive, contraction.pairs_planned]
    times = {way.__name__: [] for way in ways}
    whole = []
    for way in ways:
        result = way()
        if way == contraction.joint:
            plan = dist.last_report().plan
        is_parted = isinstance(result, dist.DistTensor)
        whole.append(result.gather() if is_parted else result)
        way()
    error = None
    if comm.rank == 0:
        ours, theirs, _ = (np.asarray(x.to("cpu")).astype(np.float64) for x in whole)
        error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    del whole, result
    for _ in range(rounds):
        for way in ways:
            times[way.__name__].append(contraction.seconds(way))
    found = {"name": name, "equation": equation, "shapes": shapes, "kind": kind, "error": error}
    for key, taken in times.items():
        found[key] = statistics.median(slowest(comm, taken)) * 1e3
    return found | {
        "strategy": plan.strategy,
        "predicted": (plan.seconds + plan.call_seconds) * 1e3,
    }


def line(each):
    sizes = ", ".join("x".join(map(str, shape)) for shape in each["shapes"])
    return (
        f"| {each['name']} | {each['equation']} | {sizes} | {each['joint']:.3g} ({each['strategy']}) | "
        f"{each['naive']:.3g} | {each['naive'] / each['joint']:.2f} | {each['pairs_planned']:.3g} | "
        f"{each['pairs_planned'] / each['joint']:.2f} | {each['predicted']:.3g} | "
        f"{each['error']:.0e} |"
    )


def main():
    """Measure all equations, operands on the root and over the ranks."""
    parser = arguments(__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the size of every index")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", nargs="+", help="beginnings of names")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cases = [
        case for case in CASES if not options.cases or case[0].startswith(tuple(options.cases))
    ]

    def work(comm, device):
        dist.calibrate(comm)
        return {
            kind: [
                measured(comm, kind, case, options.scale, device, options.rounds) for case in cases
            ]
            for kind in ("rooted", "sharded")
        }

    found, command = on_ranks(work, options, "einsum_plans.py")
    if found is None:
        return
    lines = origin(f"{command} --scale {options.scale:g}")
    for kind, results in found.items():
        lines.append("")
        for way, name in (("naive", "naive"), ("pairs_planned", "pairs")):
            ratios = [each[way] / each["joint"] for each in results]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            lines.append(
                f"{kind.capitalize()}: {name} / joint {mean:.2f} (geometric mean), at least {min(ratios):.2f}."
            )
        lines += [
            "",
            "| case | equation | shapes | joint, ms (strategy) | naive, ms | naive / joint "
            "| pairs, ms | pairs / joint | predicted | difference |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *map(line, results),
        ]
    heading = "einsum over ranks: planned together, and NumPy's order split naively"
    tell(heading, lines, options.table)
    if options.json:
        options.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
