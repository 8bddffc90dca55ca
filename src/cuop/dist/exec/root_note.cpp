#include "cuop/dist/exec/root_note.h"

#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/packed.h"

namespace cuop::dist {

std::string write_note(const RootNote& note) {
  Packer packed;
  packed.put(note.hash);
  packed.put(int{note.is_on_gpu});
  packed.put(int{note.is_to_measure});
  for (const MachineFigure& figure : kMachineFigures) packed.put(note.machine.*figure.member);
  packed.put(note.machine.ranks_per_host);
  packed.put(note.machine.memory);
  return packed.take();
}

RootNote read_note(const std::string& bytes) {
  Unpacker packed("the root's note", bytes);
  RootNote note;
  note.hash = packed.number<uint64_t>();
  note.is_on_gpu = packed.number_to(1) == 1;
  note.is_to_measure = packed.number_to(1) == 1;
  for (const MachineFigure& figure : kMachineFigures) {
    note.machine.*figure.member = packed.number<double>();
  }
  note.machine.ranks_per_host = packed.number();
  note.machine.memory = packed.number();
  const std::string wrong = wrong_figure(note.machine);
  if (!wrong.empty()) packed.fail(wrong);
  if (!packed.rest().empty()) packed.fail("a message is too long");
  return note;
}

}  // namespace cuop::dist
