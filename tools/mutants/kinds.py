"""The kinds of mistakes: a line of code -> the line with a mistake that sleeps until it is named.

Each kind is a function of (line, number, rng) that answers (planted line, description) or None where
the line offers no place for it. C++ asks `cuop_mutant(number)`, Python `_mutant(number)`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Planted = tuple[str, str] | None
Kind = Callable[[str, int, random.Random], Planted]


def _pick(matches: list[re.Match[str]], rng: random.Random) -> re.Match[str] | None:
    return rng.choice(matches) if matches else None


def _replace(line: str, match: re.Match[str], text: str) -> str:
    return line[: match.start()] + text + line[match.end() :]


def _split_condition(line: str) -> tuple[str, str, str] | None:
    """`if (a && b) return;` -> ("if (", "a && b", ") return;"); None where the line is no such one."""
    start = re.match(r"^\s*(?:\} else )?(?:if|while) \(", line)
    if not start:
        return None
    depth = 1
    for at in range(start.end(), len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            condition = line[start.end() : at]
            if ";" in condition or re.search(r"(?<![=!<>])=(?!=)", condition):
                return None  # it declares or assigns
            return line[: start.end()], condition, line[at:]
    return None


def negated_condition(line: str, number: int, _: random.Random) -> Planted:
    parts = _split_condition(line)
    if not parts:
        return None
    head, condition, tail = parts
    return f"{head}cuop_mutant({number}) != bool({condition}){tail}", f"not ({condition})"


def lost_operand(line: str, number: int, rng: random.Random) -> Planted:
    parts = _split_condition(line)
    if not parts:
        return None
    head, condition, tail = parts
    places, depth = [], 0
    for match in re.finditer(r"[(\[]|[)\]]| (&&|\|\|) ", condition):
        if match[0] in "([":
            depth += 1
        elif match[0] in ")]":
            depth -= 1
        elif depth == 0:
            places.append(match)
    if not places or len({match[1] for match in places}) > 1:
        return None
    operator = places[0][1]
    pieces = (
        re.split(r" (?:&&|\|\|) ", condition) if len(places) == condition.count(operator) else []
    )
    if len(pieces) != len(places) + 1:
        return None
    lost = rng.randrange(len(pieces))
    without = pieces[lost]
    if operator == "&&":
        pieces[lost] = f"(cuop_mutant({number}) || ({without}))"
    else:
        pieces[lost] = f"(!cuop_mutant({number}) && ({without}))"
    return head + f" {operator} ".join(pieces) + tail, f"without {operator} {without}"


def moved_bound(line: str, number: int, rng: random.Random) -> Planted:
    match = _pick(list(re.finditer(r" (<=|>=|<|>) (?=[\w(])", line)), rng)
    if not match or "template" in line or "operator" in line:
        return None
    # a < b becomes a < b + 1, which is a <= b; a <= b becomes a <= b - 1.
    sign = "" if match[1] in ("<", ">=") else "-"
    text = f" {match[1]} {sign}cuop_mutant({number}) + "
    return _replace(line, match, text), f"{match[1]} moved by one: {line[match.start() :].strip()}"


def other_comparison(line: str, number: int, rng: random.Random) -> Planted:
    # Alone between brackets, && and ||: what is added or multiplied to it would be compared too.
    whole = (
        r"(?:(?<=[(!])|(?<=&& )|(?<=\|\| ))([\w.>\-()\[\]]+) (==|!=) ([\w.:>\-]+)(?=\)| &&| \|\|)"
    )
    match = _pick(list(re.finditer(whole, line)), rng)
    if not match or not _split_condition(line):
        return None
    text = f"(cuop_mutant({number}) != ({match[0]}))"
    if match[1].count("(") != match[1].count(")"):
        return None
    return _replace(line, match, text), f"not ({match[0]})"


def other_constant(line: str, number: int, rng: random.Random) -> Planted:
    match = _pick(list(re.finditer(r"(?<=[\w)\]]) ([+\-]) 1(?![\w.'])", line)), rng)
    if not match:
        return None
    return _replace(
        line, match, f" {match[1]} (1 - cuop_mutant({number}))"
    ), f"without {match[1]} 1"


def other_sign(line: str, number: int, rng: random.Random) -> Planted:
    match = _pick(list(re.finditer(r" (\+=|-=) (?=[\w(*])", line)), rng)
    if not match or not line.rstrip().endswith(";"):
        return None
    end = line.rstrip()
    text = f" {match[1]} (1 - 2 * cuop_mutant({number})) * ({end[match.end() : -1]});"
    return end[: match.start()] + text, f"{match[1]} with the other sign"


def lost_statement(line: str, number: int, _: random.Random) -> Planted:
    match = re.match(r"^(\s+)((?:[\w\]\[.\->:()*+]+)(?:\(.*\)| = .*);)$", line)
    if not match or re.match(r"(return|throw|delete|case|break|continue|co_)\b", match[2]):
        return None
    if "(" in match[2] and match[2].count("(") != match[2].count(")"):
        return None
    return f"{match[1]}if (!cuop_mutant({number})) {match[2]}", f"without {match[2]}"


def other_answer(line: str, number: int, rng: random.Random) -> Planted:
    match = re.match(r"^(.*\breturn )(true|false|0|1|-1)(;.*)$", line)
    if not match:
        return None
    value = match[2]
    wrong = {"true": "!cuop_mutant({0})", "false": "cuop_mutant({0}) != 0"}.get(
        value, f"{value} + cuop_mutant({{0}})"
    )
    return f"{match[1]}{wrong.format(number)}{match[3]}", f"return {value} answers something else"


def lost_jump(line: str, number: int, _: random.Random) -> Planted:
    match = re.match(r"^(.*[ )}])(break|continue);(.*)$", line)
    if not match:
        return None
    return f"{match[1]}if (!cuop_mutant({number})) {match[2]};{match[3]}", f"without {match[2]}"


def other_extreme(line: str, number: int, rng: random.Random) -> Planted:
    match = _pick(list(re.finditer(r"std::(min|max)(<[\w:]+>)?\((?!\{)", line)), rng)
    if not match:
        return None
    text = f"cuop_mutant_{match[1]}{match[2] or ''}({number}, "
    return _replace(line, match, text), f"the other of {match[0]}"


CPP: tuple[Kind, ...] = (
    negated_condition,
    lost_operand,
    moved_bound,
    other_comparison,
    other_constant,
    other_sign,
    lost_statement,
    other_answer,
    lost_jump,
    other_extreme,
)

# What a file that holds mistakes includes first.
CPP_HEADER = """#pragma once
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wdangling-else"
#include <algorithm>
#include <cstdlib>
inline int cuop_mutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("CUOP_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return chosen == number ? 1 : 0;
}
template <class T>
T cuop_mutant_min(int number, const T& a, const T& b) {
  return cuop_mutant(number) ? std::max(a, b) : std::min(a, b);
}
template <class T>
T cuop_mutant_max(int number, const T& a, const T& b) {
  return cuop_mutant(number) ? std::min(a, b) : std::max(a, b);
}
"""


def _python_condition(line: str) -> tuple[str, str] | None:
    match = re.match(r"^(\s*(?:if|elif|while) )(.*):$", line)
    return (match[1], match[2]) if match and ":=" not in match[2] else None


def python_condition(line: str, number: int, _: random.Random) -> Planted:
    parts = _python_condition(line)
    if not parts:
        return None
    return f"{parts[0]}bool({parts[1]}) != _mutant({number}):", f"not ({parts[1]})"


def python_operand(line: str, number: int, rng: random.Random) -> Planted:
    parts = _python_condition(line)
    if not parts or "(" in parts[1] or (" and " in parts[1]) == (" or " in parts[1]):
        return None
    operator = " and " if " and " in parts[1] else " or "
    pieces = parts[1].split(operator)
    lost = rng.randrange(len(pieces))
    without = pieces[lost]
    wrapped = f"(_mutant({number}) or ({without}))"
    pieces[lost] = wrapped if operator == " and " else f"(not _mutant({number}) and ({without}))"
    return f"{parts[0]}{operator.join(pieces)}:", f"without{operator}{without}"


def python_constant(line: str, number: int, rng: random.Random) -> Planted:
    match = _pick(list(re.finditer(r"(?<=[\w)\]]) ([+\-]) 1(?![\w.])", line)), rng)
    if not match or '"' in line:
        return None
    return _replace(line, match, f" {match[1]} (1 - _mutant({number}))"), f"without {match[1]} 1"


def python_statement(line: str, number: int, _: random.Random) -> Planted:
    match = re.match(r"^(\s+)([\w.\[\]]+(?:\(.*\)| = .*))$", line)
    if not match or match[2].count("(") != match[2].count(")") or match[2].startswith("return"):
        return None
    if not re.match(r"^[\w.\[\]]+\(", match[2]):
        return None
    return f"{match[1]}_mutant({number}) or {match[2]}", f"without {match[2]}"


def python_answer(line: str, number: int, _: random.Random) -> Planted:
    match = re.match(r"^(\s+return )(True|False)$", line)
    if not match:
        return None
    return f"{match[1]}{match[2]} != bool(_mutant({number}))", f"return not {match[2]}"


PYTHON: tuple[Kind, ...] = (
    python_condition,
    python_operand,
    python_constant,
    python_statement,
    python_answer,
)

PYTHON_HEADER = (
    "def _mutant(number, _chosen=__import__('os').environ.get('CUOP_MUTANT')):"
    " return _chosen == str(number)\n"
)
