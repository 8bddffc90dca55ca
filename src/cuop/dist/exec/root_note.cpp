#include "cuop/dist/exec/root_note.h"

#include <array>
#include <bit>
#include <cmath>

#include "cuop/core/text.h"
#include "cuop/dist/packed.h"

namespace cuop::dist {
namespace {

/// A machine as it lies in memory.
struct NotedMachine {
  std::array<double, 15> figures;
  double call_overhead, sharded_call_overhead, overlap, recurrence_speed;
  int64_t ranks_per_host, memory;
};

}  // namespace

std::string write_note(const RootNote& note) {
  Packer packed;
  packed.put(note.hash);
  packed.put(int{note.is_on_gpu});
  packed.put(int{note.is_to_measure});
  const auto [figures, call_overhead, sharded_call_overhead, overlap, recurrence_speed,
              ranks_per_host, memory] = std::bit_cast<NotedMachine>(note.machine);
  for (const double figure : figures) packed.put(figure);
  packed.put(call_overhead);
  packed.put(sharded_call_overhead);
  packed.put(overlap);
  packed.put(recurrence_speed);
  packed.put(ranks_per_host);
  packed.put(memory);
  return packed.take();
}

RootNote read_note(const std::string& bytes) {
  Unpacker packed("the root's note", bytes);
  RootNote note;
  note.hash = packed.number<uint64_t>();
  note.is_on_gpu = packed.number_to(1) == 1;
  note.is_to_measure = packed.number_to(1) == 1;
  NotedMachine machine{};
  for (double& figure : machine.figures) {
    figure = packed.number<double>();
    if (!std::isfinite(figure) || figure <= 0.0) packed.fail("a figure is not above 0");
  }
  for (double* seconds : {&machine.call_overhead, &machine.sharded_call_overhead}) {
    *seconds = packed.number<double>();
    if (!std::isfinite(*seconds) || *seconds < 0.0) packed.fail("the time of a call is below 0");
  }
  const auto part = [&](const char* what) {
    const auto value = packed.number<double>();
    if (!(value >= 0.0 && value <= 1.0)) packed.fail(cat(what, " is not within 0 and 1"));
    return value;
  };
  machine.overlap = part("the part of moves that is hidden");
  machine.recurrence_speed = part("the speed of recurrences");
  machine.ranks_per_host = packed.number();
  if (machine.ranks_per_host < 0) packed.fail("a number of ranks is below 0");
  machine.memory = packed.number();
  if (machine.memory <= 0) packed.fail("a memory limit is not above 0");
  if (!packed.rest().empty()) packed.fail("a message is too long");
  note.machine = std::bit_cast<Machine>(machine);
  return note;
}

}  // namespace cuop::dist
