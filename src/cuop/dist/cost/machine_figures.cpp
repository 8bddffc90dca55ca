#include "cuop/dist/cost/machine_figures.h"

#include <cmath>
#include <iterator>
#include <sstream>

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

static_assert(sizeof(Machine) == std::size(kMachineFigures) * sizeof(double) + 2 * sizeof(int64_t),
              "a figure of Machine is not in the table");

constexpr const char* kRanksPerHost = "ranks_per_host";
constexpr const char* kMemory = "memory";

bool is_in(FigureRange range, double value) {
  if (!std::isfinite(value) || value < 0.0) return false;
  return range == FigureRange::kSeconds ||
         (range == FigureRange::kPart ? value <= 1.0 : value > 0.0);
}

}  // namespace

const char* name(FigureRange range) {
  switch (range) {
    case FigureRange::kAboveZero:
      return "a number above 0";
    case FigureRange::kSeconds:
      return "a number of seconds, 0 or more";
    case FigureRange::kPart:
      return "a number from 0 to 1";
  }
  return "";
}

std::string wrong_figure(const Machine& machine) {
  for (const MachineFigure& figure : kMachineFigures) {
    const double value = machine.*figure.member;
    if (!is_in(figure.range, value)) {
      return cat(figure.name, " is ", value, "; it must be ", name(figure.range));
    }
  }
  if (machine.ranks_per_host < 0) {
    return cat(kRanksPerHost, " is ", machine.ranks_per_host, "; it must be 0 or more");
  }
  if (machine.memory <= 0) return cat(kMemory, " is ", machine.memory, "; it must be above 0");
  return "";
}

std::string to_text(const Machine& machine) {
  std::ostringstream out;
  out.precision(17);
  for (const MachineFigure& figure : kMachineFigures) {
    out << figure.name << ' ' << machine.*figure.member << ' ';
  }
  out << kRanksPerHost << ' ' << machine.ranks_per_host << ' ' << kMemory << ' ' << machine.memory;
  return out.str();
}

std::optional<Machine> machine_from(const std::string& text) {
  std::istringstream in(text);
  Machine machine;
  std::string found;
  const auto reads = [&](const char* name, auto& value) {
    return in >> found >> value && found == name;
  };
  for (const MachineFigure& figure : kMachineFigures) {
    if (!reads(figure.name, machine.*figure.member)) return std::nullopt;
  }
  if (!reads(kRanksPerHost, machine.ranks_per_host) || !reads(kMemory, machine.memory) ||
      !in.eof() || !wrong_figure(machine).empty()) {
    return std::nullopt;
  }
  return machine;
}

}  // namespace cuop::dist
