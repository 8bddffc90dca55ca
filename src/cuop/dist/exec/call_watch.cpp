#include "cuop/dist/exec/call_watch.h"

#include "cuop/dist/exec/report.h"

namespace cuop::dist {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

CallWatch::CallWatch(Communicator& comm, std::string_view text)
    : comm_(comm), span_(text, "dist"), sent_before_(comm.bytes_sent()) {
  measured_.rank = comm.rank();
}

CallWatch::Work::Work(CallWatch& watch, bool is_on_gpu)
    : watch_(watch),
      sent_before_(watch.comm_.bytes_sent()),
      moves_before_(watch.comm_.seconds_in_calls()) {
  watch.measured_.is_on_gpu = is_on_gpu;
  if (watch.span_.is_open()) sent_to_before_ = watch.comm_.bytes_sent_to();
}

CallWatch::Work::~Work() {
  Measured& measured = watch_.measured_;
  measured.work_seconds = seconds_since(begin_);
  measured.move_seconds = watch_.comm_.seconds_in_calls() - moves_before_;
  measured.bytes_sent = watch_.comm_.bytes_sent() - sent_before_;
  if (!watch_.span_.is_open() || measured.bytes_sent == 0) return;
  watch_.sent_to_ = watch_.comm_.bytes_sent_to();
  for (size_t rank = 0; rank < sent_to_before_.size(); ++rank) {
    watch_.sent_to_[rank] -= sent_to_before_[rank];
  }
}

void CallWatch::file(const std::shared_ptr<const Planned>& made) {
  measured_.seconds = seconds_since(begin_);
  const FiledReport filed{{made, &made->plan}, comm_.bytes_sent() - sent_before_, measured_};
  if (span_.is_open()) {
    const auto record = std::make_shared<CallDetail>();
    record->filed = filed;
    for (size_t rank = 0; rank < sent_to_.size(); ++rank) {
      if (sent_to_[rank] == 0) continue;
      record->sent_to.emplace_back(comm_.in_world(static_cast<int>(rank)), sent_to_[rank]);
    }
    span_.set_name(made->label);
    span_.add_bytes(measured_.bytes_sent);
    span_.add_flops(made->plan.flops());
    span_.set_detail(record);
  }
  file_report(filed);
}

}  // namespace cuop::dist
