#include "cuop/dist/exec/calibration.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/exec/call_frame.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/poisson/column_solver.h"
#include "cuop/tune/clock.h"
#include "cuop/tune/database.h"
#include "cuop/tune/machine.h"
#include "cuop/tune/permission.h"

namespace cuop::dist {
namespace {

constexpr int kRepeats = 3;
/// Figures come of so many milliseconds: ranks that begin together may share a core for a while.
constexpr double kLongMs = 40.0;
/// Shorter products are timed with larger ones, which run at the rate of those that matter.
constexpr double kShortestMs = 5.0;

/// The lower quartile of some times, which take at least so long together, in seconds.
template <class Work>
double usual_seconds(Device device, const Work& work, double least_ms = kLongMs) {
  const std::unique_ptr<tune::Clock> clock = tune::clock_for(device);
  clock->time_ms(work);  // the first opens the way
  std::vector<double> times;
  for (double all = 0.0; times.size() < kRepeats || all < least_ms; all += times.back()) {
    times.push_back(std::max(clock->time_ms(work), 1e-3));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 4] / 1e3;
}

/// Numbers in [-1, 1] that do not repeat; the user's generators are left alone.
Tensor noise(const Shape& shape, DType dtype, Device device) {
  const auto count = static_cast<double>(element_count(shape));
  const Tensor steps = multiply(arange(0.0, count, 1.0, DType::kFloat32, device), 0.7);
  return reshape(cast(sin(steps), dtype), shape);
}

/// Of a product of such matrices, as large as it takes. Their sides are no powers of two and, but
/// of 16-bit floats, odd, as those of most: products of the others run up to a tenth faster.
double product_flops(Device device, DType dtype) {
  constexpr int64_t kLargest = 8192;
  for (int64_t size = 256;; size *= 2) {
    const int64_t n = size - size / 8 - (itemsize(dtype) == 2 ? 0 : 1);
    const Tensor a = noise({n, n}, dtype, device), out = empty({n, n}, dtype, device);
    const auto product = [&] { matmul(a, a, {}, &out); };
    if (usual_seconds(device, product, 0.0) * 1e3 < kShortestMs && size < kLargest) continue;
    return 2.0 * static_cast<double>(n * n * n) / usual_seconds(device, product);
  }
}

/// Of transforms of complex64 lines, of as many elements as it takes.
double fft_flops(Device device, int64_t length) {
  const int64_t count = std::max(length, device.is_cpu() ? int64_t{1} << 18 : int64_t{1} << 24);
  const Tensor x = ones({count / length, length}, DType::kComplex64, device),
               out = empty(x.shape(), x.dtype(), device);
  const double seconds = usual_seconds(device, [&] { fft(x, {}, -1, FftNorm::kBackward, &out); });
  return 5.0 * static_cast<double>(count) * std::log2(static_cast<double>(length)) / seconds;
}

/// Of convolutions of 3 x 3 cells and 64 channels, as in the middle of image networks; on a GPU of
/// so many cells that its rate is that of calls which are worth their moves.
double conv_flops(Device device) {
  constexpr int64_t kChannels = 64, kWindow = 3;
  const int64_t images = device.is_cpu() ? 1 : 32, side = device.is_cpu() ? 56 : 112,
                outputs = device.is_cpu() ? kChannels : 2 * kChannels;
  const Tensor x = noise({images, kChannels, side, side}, DType::kFloat32, device),
               w = noise({outputs, kChannels, kWindow, kWindow}, DType::kFloat32, device),
               y = empty({images, outputs, side, side}, x.dtype(), device);
  ConvOptions options;
  options.padding = {1};
  const double seconds = usual_seconds(device, [&] { conv2d(x, w, nullptr, options, &y); });
  return 2.0 * static_cast<double>(y.size() * kChannels * kWindow * kWindow) / seconds;
}

/// Of products of a short side, many at a time; one less than that, as sides are that are no powers
/// of two.
double short_product_flops(Device device) {
  const int64_t side = static_cast<int64_t>(kShortProduct) - 1, count = device.is_cpu() ? 1 : 16;
  const Tensor a = noise({count, side, side}, DType::kFloat32, device),
               c = empty(a.shape(), a.dtype(), device);
  const double seconds = usual_seconds(device, [&] { matmul(a, a, {}, &c); });
  return 2.0 * static_cast<double>(c.size() * side) / seconds;
}

/// Of an addition whose operands no cache holds.
double memory_bandwidth(Device device) {
  const int64_t count = device.is_cpu() ? int64_t{8} << 20 : int64_t{64} << 20;
  const Tensor a = ones({count}, DType::kFloat32, device),
               out = zeros({count}, DType::kFloat32, device);
  const double seconds = usual_seconds(device, [&] { add(a, a, &out); });
  return 2.0 * static_cast<double>(a.nbytes()) / seconds;
}

/// Of a copy of rows to columns, which is as long.
double transposed_bandwidth(Device device) {
  const int64_t side = device.is_cpu() ? int64_t{1} << 10 : int64_t{1} << 12;
  const Tensor x = ones({side, side}, DType::kComplex64, device),
               out = empty({side, side}, DType::kComplex64, device);
  const double seconds = usual_seconds(device, [&] { copy_into(out, swap_axes(x, 0, 1)); });
  return 2.0 * static_cast<double>(x.nbytes()) / seconds;
}

/// Of recurrences along columns, out of the caches.
double recurrence_bandwidth() {
  const int64_t rows = 1 << 10, columns = (1 << 10) + 8;
  const Tensor x = ones({rows, columns}, DType::kFloat64), out = empty(x.shape(), x.dtype());
  const kernels::ColumnEquations equations{.shifts = std::vector<double>(columns, 1.0)};
  const double seconds = usual_seconds(kCpu, [&] { kernels::solve_columns(equations, x, out); });
  return 2.0 * static_cast<double>(x.nbytes()) / seconds;
}

/// Sorted seconds on the slowest rank of each of `works`, which take turns, from when all ranks
/// begin until the devices of all have done what was asked of them. Some turns, but short ones go
/// on until they have taken so many seconds together that the host is seen at rest: a rank that
/// waits for a core waits milliseconds.
std::vector<std::vector<double>> times_together(Communicator& comm, Device device,
                                                const std::vector<std::function<void()>>& works,
                                                double least_seconds) {
  constexpr size_t kTurns = 8, kMostTurns = 512;
  const auto turn = [&](const std::function<void()>& work) {
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    work();
    backend::runtime(device).synchronize(current_stream(device));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (const auto& work : works) turn(work);  // the first opens the way
  std::vector<std::vector<double>> found(works.size());
  // The same number on all ranks, as all see the same times.
  for (double all = 0.0; all < least_seconds && found[0].size() < kMostTurns;) {
    std::vector<double> mine, slowest(kTurns * works.size());
    for (size_t i = 0; i < slowest.size(); ++i) mine.push_back(turn(works[i % works.size()]));
    comm.all_reduce(mine.data(), slowest.data(), static_cast<int64_t>(slowest.size()),
                    DType::kFloat64, ReduceKind::kMax);
    for (size_t i = 0; i < slowest.size(); ++i) found[i % works.size()].push_back(slowest[i]);
    for (const double each : slowest) all += each;
  }
  for (std::vector<double>& times : found) std::sort(times.begin(), times.end());
  return found;
}

/// What `times` exchanges take, one after the other, and their wait. In each of them a rank sends
/// `bytes` of `sent` to each of the next `peers` ranks, from whom as many come into `received`.
double exchange_seconds(Communicator& comm, const Tensor& sent, const Tensor& received,
                        int64_t bytes, int peers, int times) {
  const int ranks = comm.size();
  const Device device = sent.device();
  std::vector<Patch> to, from;
  for (int i = 0; i < peers; ++i) {
    const auto part = [&](const Tensor& x) { return slice(x, 0, i * bytes, (i + 1) * bytes); };
    to.push_back({(comm.rank() + 1 + i) % ranks, part(sent)});
    from.push_back({(comm.rank() + 2 * ranks - 1 - i) % ranks, part(received)});
  }
  const Stream stream = current_stream(device);
  const std::function<void()> work = [&] {
    for (int i = 0; i < times; ++i) comm.exchange(to, from, stream);
  };
  const std::vector<double> found = times_together(comm, device, {work}, 0.02)[0];
  return std::max(found[found.size() / 4], 1e-9);  // what others do to the links is not theirs
}

/// A product whose plan is followed in the plainest way: operands go where they are read, each rank
/// that has rows of A multiplies them.
Operation short_product() {
  Operation operation;
  operation.text = "short product";
  operation.names = {"A", "B"};
  operation.plan = [](const PlanArguments& given) {
    const Placement &a = given.inputs[0], &b = given.inputs[1];
    return plan_matmul(
        {a.shape[0], b.shape[1], a.shape[1], a.dtype, a.sharding, b.sharding, given.output},
        given.machine, given.strategy);
  };
  operation.execute = [](const Plan& plan, const std::vector<DistTensor>& inputs) {
    const DistTensor a = moved_to(inputs[0], plan.inputs[0].sharding),
                     b = moved_to(inputs[1], plan.inputs[1].sharding);
    const Placement& c = plan.outputs[0];
    const Tensor made = a.box().empty() ? Tensor() : matmul(a.local(), b.local());
    return DistTensor(a.comm_ptr(), c.sharding, c.shape, c.dtype, made, a.device());
  };
  operation.alone = [](const Plan&, const std::vector<Tensor>& inputs) {
    return matmul(inputs[0], inputs[1]);
  };
  return operation;
}

/// What calls take on the slowest rank beside the steps of their plans, of which short ones do not
/// reach the figures: what their starts take is the call's. Of short products of matrices that one
/// rank has, and of matrices in rows, by two strategies each. They take turns, and medians count:
/// programs do not make one call again and again on a host at rest.
void measure_calls(const CommunicatorPtr& comm, Device device, Machine& machine) {
  constexpr double kProduct = 1e-6;  // seconds at the rate of long ones
  const auto side = static_cast<int64_t>(std::cbrt(kProduct * machine.flops / 2.0));
  const FiledReport before = filed_report();
  const StrictScope open(false);  // B is gathered for nobody
  const int ranks = comm->size(), rank = comm->rank();
  const Operation operation = short_product();
  const Tensor x = noise({side, side}, DType::kFloat32, device);
  const std::vector<Tensor> whole(2, rank == 0 ? x : Tensor());
  const Sharding rows(Mesh::line(ranks), split_dim(2, 0));
  const Interval mine = rows.owner_box(x.shape(), rank).interval(0);
  const std::vector<DistTensor> parts(
      2, DistTensor(comm, rows, x.shape(), x.dtype(), slice(x, 0, mine.low, mine.high), device));
  std::vector<std::function<void()>> calls;
  std::array<double, 4> steps = {};  // what those of each call take by the figures
  const auto add = [&](const std::string& strategy, bool is_rooted) {
    const size_t at = calls.size();
    const CallOptions options{.strategy = ranks > 1 ? strategy : "", .machine = machine};
    calls.emplace_back([&, at, options, is_rooted] {
      if (is_rooted) {
        call_rooted(comm, operation, whole, options);
      } else {
        call_sharded(operation, parts, options);
      }
      steps.at(at) = filed_report().plan->seconds();
      backend::runtime(device).synchronize();
    });
  };
  for (const char* strategy : {"root", "row"}) add(strategy, true);
  for (const char* strategy : {"row", "column"}) add(strategy, false);
  const auto times = times_together(*comm, device, calls, 0.1);
  const auto beside = [&](size_t i) { return times[i][times[i].size() / 2] - steps[i]; };
  machine.call_overhead = std::max((beside(0) + beside(1)) / 2, 1e-9);
  machine.sharded_call_overhead = std::max((beside(2) + beside(3)) / 2, 1e-9);
  file_report(before);
}

/// Nothing where a rank has no room for what is measured with.
std::optional<Machine> measured(const CommunicatorPtr& ranks, Device device) {
  Communicator& comm = *ranks;
  const trace::Span span("calibrate ranks", "plan");
  Machine machine;
  bool has_room = true;
  const auto measure = [&](const auto& figures) {
    comm.barrier();  // ranks of one host share its cores and memory: all work at the same time
    try {
      if (has_room) figures();
    } catch (const MemoryError&) {
      has_room = false;
    }
  };
  measure([&] {
    machine.flops = product_flops(device, DType::kFloat32);
    machine.half_speed = product_flops(device, DType::kBFloat16) / machine.flops;
    machine.double_speed = product_flops(device, DType::kFloat64) / machine.flops;
  });
  constexpr int64_t kItem = 8;  // of complex64
  measure([&] { machine.fft_speed = fft_flops(device, kShortLine / kItem) / machine.flops; });
  measure([&] { machine.long_fft_speed = fft_flops(device, kLongLine / kItem) / machine.flops; });
  measure([&] { machine.conv_speed = conv_flops(device) / machine.flops; });
  measure(
      [&] { machine.short_speed = std::min(1.0, short_product_flops(device) / machine.flops); });
  measure([&] { machine.memory_bandwidth = memory_bandwidth(device); });
  measure(
      [&] { machine.transposed_speed = transposed_bandwidth(device) / machine.memory_bandwidth; });
  measure([&] {
    machine.recurrence_speed =
        device.is_cpu() ? std::min(1.0, recurrence_bandwidth() / machine.memory_bandwidth) : 0;
  });
  const int others = comm.size() - 1;
  const int64_t long_bytes = device.is_cpu() ? int64_t{8} << 20 : int64_t{256} << 20;
  Tensor sent, received;
  if (others > 0) {
    measure([&] {
      sent = ones({long_bytes}, DType::kUInt8, device);
      received = empty({long_bytes}, DType::kUInt8, device);
    });
  }
  if (!agree_all(comm, has_room)) return std::nullopt;
  if (others > 0) {
    const auto moves = [&](int64_t bytes, int peers, int times) {
      return exchange_seconds(comm, sent, received, bytes, peers, times);
    };
    // Calls have about two moves, of which the first one's start is met, and one wait.
    const double wait = moves(8, 1, 0), start = moves(8, 1, 1);
    machine.latency = std::max((moves(8, 1, 2) - wait) / 2, 1e-8);
    const double whole = moves(long_bytes, 1, 1);
    // On a busy machine a start may have been slow once more than half of the time.
    machine.link_bandwidth = static_cast<double>(long_bytes) / std::max(whole - start, whole / 4);
    const int many = std::min(others, 8);
    const double burst = (moves(8, many, 2) - wait) / 2 - machine.latency;
    machine.message_overhead =
        std::max(many > 1 ? burst / (many - 1) : machine.latency / 8.0, 1e-8);
  }
  for (double Machine::*speed :
       {&Machine::flops, &Machine::half_speed, &Machine::double_speed, &Machine::fft_speed,
        &Machine::long_fft_speed, &Machine::conv_speed, &Machine::short_speed,
        &Machine::transposed_speed, &Machine::recurrence_speed, &Machine::memory_bandwidth,
        &Machine::link_bandwidth}) {
    machine.*speed = agree_min(comm, machine.*speed);
  }
  machine.overlap = device.is_cpu() ? 0 : 1;
  measure_calls(ranks, device, machine);
  return machine;
}

/// Ranks whose figures are the same: how they reach each other, how many there are, on how many
/// hosts, and what each of them computes with.
std::string figures_key(std::string_view kind, int ranks, int on_a_host, Device device) {
  const std::string threads =
      device.is_cpu() ? cat(backend::thread_count(), " threads, ") : std::string();
  return cat("figures, calls of both kinds too, of ranks ", kind, ", ", ranks, " of which ",
             on_a_host, " on a host, ", threads, tune::machine_text(device));
}

std::optional<Machine> stored_figures(const std::string& key) {
  const auto stored = tune::stored_choice(key);
  if (!stored) return std::nullopt;
  const std::optional<Machine> machine = machine_from(stored->value);
  tune::note_loaded(machine.has_value());
  return machine;
}

/// Of threads of this process on GPUs, by their number: looked up once, and what is measured later.
class FiguresOfThreads {
 public:
  std::optional<Machine> find(int ranks, Device device) {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(ranks);
    if (known != known_.end()) return known->second;
    return known_[ranks] = stored_figures(figures_key("thread", ranks, ranks, device));
  }
  void put(int ranks, const Machine& machine) {
    const std::lock_guard lock(mutex_);
    known_[ranks] = machine;
  }

 private:
  ForkMutex mutex_;
  std::map<int, std::optional<Machine>> known_;
};

FiguresOfThreads& figures_of_threads() {
  static auto& figures = *new FiguresOfThreads;  // ranks may compute while the process ends
  return figures;
}

/// On rank 0: the figures of ranks like these that this process or an earlier one has, none when
/// they are to be measured.
std::optional<Machine> known_figures(const std::string& key, Device device, const Machine& assumed,
                                     bool is_again) {
  if (!is_again) {
    if (const auto machine = stored_figures(key)) return machine;
  }
  return tune::measuring_obstacle(device, is_again).empty() ? std::nullopt : std::optional(assumed);
}

}  // namespace

int64_t calibration_bytes(Device device) {
  // Two operands of memory_bandwidth; of the largest product its operands and what makes them.
  return device.is_cpu() ? int64_t{128} << 20 : int64_t{2} << 30;
}

Machine calibrate(const CommunicatorPtr& ranks, Device device, Communicator::Figures of,
                  const Machine& assumed, bool is_again) {
  Communicator& comm = *ranks;
  const std::string key = figures_key(comm.kind(), comm.size(), comm.local_size(), device);
  std::string text;
  if (comm.rank() == 0) {
    const std::optional<Machine> known = known_figures(key, device, assumed, is_again);
    if (known) text = to_text(*known);
  }
  text = broadcast_text(comm, text, 0);
  std::optional<Machine> machine = machine_from(text);
  if (!machine) {
    const auto begin = std::chrono::steady_clock::now();
    machine = measured(ranks, device);
    // Not kept: there may be room another time.
    if (!machine) return machine_from(broadcast_text(comm, to_text(assumed), 0)).value();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (comm.rank() == 0) {
      tune::store_choice(key, {to_text(*machine), took.count(), 0.0, kRepeats});
    }
  }
  comm.figures(of) = std::make_shared<const Machine>(*machine);
  if (comm.rank() == 0 && !device.is_cpu() && comm.kind() == "thread") {
    figures_of_threads().put(comm.size(), *machine);
  }
  return *machine;
}

Machine calibrate(const CommunicatorPtr& comm, Device device, bool is_again) {
  Machine machine;
  run_together(
      *comm, cat("calibrate", is_again ? " again" : ""), [] {},
      [&] {
        machine = calibrate(comm, device, Communicator::Figures::kParts,
                            rank_machine(device, comm->reaches(device)), is_again);
        comm->figures(figures_of(device)) = comm->figures(Communicator::Figures::kParts);
      });
  return machine;
}

std::optional<Machine> kept_figures(int ranks, Device device) {
  return figures_of_threads().find(ranks, device);
}

}  // namespace cuop::dist
