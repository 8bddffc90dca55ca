// A cuFFT for the simulated GPU: the part of its interface that cuOP uses, with the checks
// of its documentation. Types, directions and answers are written down here a second time, apart
// from cuOP's own, so that a slip in either shows. What is easily got wrong is made to show too:
// transforms pass through the work area, which is spoilt behind them, as is the spectrum of a
// transform to real numbers; a plan has memory of its own, without which a recorded transform
// fails.
#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/simulator/elements.h"
#include "tests/simulator/fourier.h"
#include "tests/simulator/library_work.h"

using namespace cuop::backend::cuda;
using cuop::simulator::LibraryMemory;
using cuop::simulator::region;

namespace {

enum Status : int {
  kSuccess = 0,
  kInvalidPlan = 1,
  kAllocFailed = 2,
  kInvalidType = 3,
  kInvalidValue = 4,
  kInternalError = 5,
  kExecFailed = 6,
  kSetupFailed = 7,
  kInvalidSize = 8,
  kInvalidDevice = 11,
  kNoWorkspace = 13,
  kNotImplemented = 14,
};
enum DataType : int { kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5 };
constexpr int kForward = -1, kInverse = 1;

constexpr int64_t kLongestWithoutWork = 16;  ///< of the powers of two

/// How the elements of one side lie.
struct Side {
  int64_t count = 0;  ///< elements of a line
  int64_t stride = 1, distance = 1;
  /// Of the slower axes, the slowest first: positions of the next axis between two of it.
  std::array<int64_t, 2> pitch = {1, 1};
};

struct Transforms {
  enum Kind { kComplex, kRealToComplex, kComplexToReal } kind = kComplex;
  bool is_double = false;
  int64_t n = 0, batch = 0;
  std::array<int64_t, 2> slower = {1, 1};  ///< lengths of the slower axes, the slowest first
  Side in, out;

  int64_t lines() const { return slower[0] * slower[1]; }  ///< of a transform
};

/// Where line `number` of all transforms begins.
int64_t line_begin(const Transforms& t, const Side& side, int64_t number) {
  const int64_t which = number / t.lines(), slow = number % t.lines() / t.slower[1];
  const int64_t mid = number % t.slower[1];
  return which * side.distance + (slow * side.pitch[0] + mid) * side.pitch[1] * side.stride;
}

struct Plan {
  std::mutex in_use;  ///< a plan serves one thread at a time
  ContextHandle context = nullptr;
  Transforms transforms;
  bool is_made = false, takes_own_memory = true;
  size_t work_bytes = 0;
  void* work_area = nullptr;
  StreamHandle stream = nullptr;
  std::unique_ptr<const LibraryMemory> tables;
};

std::mutex mutex;
std::map<int, std::shared_ptr<Plan>>& plans() {
  static auto* all = new std::map<int, std::shared_ptr<Plan>>;
  return *all;
}

/// Answers call(plan), unless there is no such plan or another thread is at it.
template <class Call>
int with_plan(int handle, Call&& call) {
  std::shared_ptr<Plan> plan;
  {
    const std::lock_guard lock(mutex);
    const auto found = plans().find(handle);
    if (found == plans().end()) return kInvalidPlan;
    plan = found->second;
  }
  const std::unique_lock lock(plan->in_use, std::try_to_lock);
  return lock.owns_lock() ? call(*plan) : kInternalError;
}

template <class Real, class Call>
auto visit_kind(Transforms::Kind kind, Call&& call) {
  using Complex = std::complex<Real>;
  if (kind == Transforms::kRealToComplex) return call(Real(), Complex());
  if (kind == Transforms::kComplexToReal) return call(Complex(), Real());
  return call(Complex(), Complex());
}
/// Answers call(In(), Out()) with the types of both sides' elements.
template <class Call>
auto visit(const Transforms& t, Call&& call) {
  return t.is_double ? visit_kind<double>(t.kind, call) : visit_kind<float>(t.kind, call);
}

/// The whole line that a transform reads; of a symmetric one only half is given.
template <class In>
std::vector<std::complex<double>> line_of(const Transforms& t, const In* given) {
  std::vector<std::complex<double>> line(static_cast<size_t>(t.n));
  for (int64_t i = 0; i < t.in.count; ++i) {
    auto& element = line[static_cast<size_t>(i)];
    element = std::complex<double>(given[i]);
    if (t.kind != Transforms::kComplexToReal) continue;
    if (i == 0 || 2 * i == t.n) {
      element = element.real();
    } else {
      line[static_cast<size_t>(t.n - i)] = std::conj(element);
    }
  }
  return line;
}

/// Along a slower axis, between the lines of each transform.
void transform_across(const Transforms& t, std::vector<std::vector<std::complex<double>>>& lines,
                      size_t axis, int sign) {
  const auto n = static_cast<size_t>(t.slower[axis]);
  const auto step = static_cast<size_t>(axis == 0 ? t.slower[1] : 1);
  std::vector<std::complex<double>> across(n);
  for (size_t first = 0; n > 1 && first < lines.size(); ++first) {
    if (first / step % n != 0) continue;
    for (size_t i = 0; i < static_cast<size_t>(t.out.count); ++i) {
      for (size_t k = 0; k < n; ++k) across[k] = lines[first + k * step][i];
      cuop::simulator::fourier_transform(across, sign);
      for (size_t k = 0; k < n; ++k) lines[first + k * step][i] = across[k];
    }
  }
}

/// Runs on the stream's thread.
template <class In, class Out>
void run(const Transforms& t, In* in, Out* out, In* work, int sign) {
  const In spoilt(std::numeric_limits<float>::quiet_NaN());
  const int64_t lines = t.batch * t.lines(), all = lines * t.in.count;
  std::vector<In> own(work == nullptr ? static_cast<size_t>(all) : 0);
  if (work == nullptr) work = own.data();
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t i = 0; i < t.in.count; ++i) {
      In& from = in[line_begin(t, t.in, line) + i * t.in.stride];
      work[line * t.in.count + i] = from;
      if (t.kind == Transforms::kComplexToReal) from = spoilt;
    }
  }
  std::vector<std::vector<std::complex<double>>> spectra(static_cast<size_t>(lines));
  for (int64_t number = 0; number < lines; ++number) {
    auto& line = spectra[static_cast<size_t>(number)] = line_of(t, work + number * t.in.count);
    cuop::simulator::fourier_transform(line, sign);
  }
  for (size_t axis = 2; axis-- > 0;) transform_across(t, spectra, axis, sign);
  for (int64_t number = 0; number < lines; ++number) {
    for (int64_t i = 0; i < t.out.count; ++i) {
      out[line_begin(t, t.out, number) + i * t.out.stride] = cuop::simulator::narrowed<Out>(
          spectra[static_cast<size_t>(number)][static_cast<size_t>(i)]);
    }
  }
  for (int64_t i = 0; i < all; ++i) work[i] = spoilt;
}

bool set_types(Transforms& t, DataType in, DataType out, DataType computed_in) {
  t.is_double = computed_in == kC64F;
  if (!t.is_double && computed_in != kC32F) return false;
  const DataType real = t.is_double ? kR64F : kR32F, complex = computed_in;
  t.kind = in == real    ? Transforms::kRealToComplex
           : out == real ? Transforms::kComplexToReal
                         : Transforms::kComplex;
  return in == (t.kind == Transforms::kRealToComplex ? real : complex) &&
         out == (t.kind == Transforms::kComplexToReal ? real : complex);
}

/// Counts the elements of lines; without embeddings everything lies densely.
void set_sides(Transforms& t, bool is_embedded) {
  const int64_t half = t.n / 2 + 1;
  t.in.count = t.kind == Transforms::kComplexToReal ? half : t.n;
  t.out.count = t.kind == Transforms::kRealToComplex ? half : t.n;
  if (is_embedded) return;
  t.in = {t.in.count, 1, t.in.count * t.lines(), {t.slower[1], t.in.count}};
  t.out = {t.out.count, 1, t.out.count * t.lines(), {t.slower[1], t.out.count}};
}

/// The whole of a side, from the first element to the last.
template <class T>
cuop::simulator::Region region_of(const Transforms& t, const Side& side, T* first) {
  const int64_t last = line_begin(t, side, t.lines() - 1) + (side.count - 1) * side.stride;
  return region(first, last + 1, 1, t.batch, side.distance);
}

size_t work_bytes_of(const Transforms& t) {
  const bool is_power_of_two = (t.n & (t.n - 1)) == 0;
  if (t.lines() == 1 && is_power_of_two && t.n <= kLongestWithoutWork) return 0;
  return visit(t, [&](auto in, auto) {
    return static_cast<size_t>(t.batch * t.lines() * t.in.count) * sizeof(in);
  });
}

bool is_aligned(const void* data, const Transforms& t) {
  return reinterpret_cast<uintptr_t>(data) % (t.is_double ? 16 : 8) == 0;
}

}  // namespace

CUOP_SIMULATOR_ENTRY int cufftGetVersion(int* version) {
  *version = 999;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cufftCreate(int* handle) {
  static int last = 0;
  auto plan = std::make_shared<Plan>();
  plan->context = cuop::simulator::library_context();
  if (plan->context == nullptr) return kSetupFailed;
  const std::lock_guard lock(mutex);
  *handle = ++last;
  plans().emplace(*handle, std::move(plan));
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cufftDestroy(int handle) {
  std::shared_ptr<Plan> plan;  // goes when nothing is locked
  const std::lock_guard lock(mutex);
  const auto found = plans().find(handle);
  if (found == plans().end()) return kInvalidPlan;
  plan = std::move(found->second);
  plans().erase(found);
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cufftSetAutoAllocation(int handle, int is_on) {
  return with_plan(handle, [&](Plan& plan) {
    plan.takes_own_memory = is_on != 0;
    return kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY int cufftXtMakePlanMany(int handle, int rank, long long* n,
                                             long long* in_embed, long long in_stride,
                                             long long in_distance, DataType in,
                                             long long* out_embed, long long out_stride,
                                             long long out_distance, DataType out, long long batch,
                                             size_t* work_bytes, DataType computed_in) {
  return with_plan(handle, [&](Plan& plan) {
    if (plan.is_made) return kInvalidPlan;
    if (plan.context != cuop::simulator::library_context()) return kInvalidDevice;
    if (rank < 1 || rank > 3 || n == nullptr || work_bytes == nullptr) return kInvalidValue;
    if (plan.takes_own_memory) return kNotImplemented;  // cuOP does without
    const bool is_embedded = in_embed != nullptr && out_embed != nullptr;
    Transforms t;
    t.n = n[rank - 1];
    t.batch = batch;
    t.in = {0, in_stride, in_distance};
    t.out = {0, out_stride, out_distance};
    for (int i = 0; i + 1 < rank; ++i) {
      const auto at = static_cast<size_t>(i + 3 - rank);
      t.slower[at] = n[i];
      if (!is_embedded) continue;
      t.in.pitch[at] = in_embed[i + 1];
      t.out.pitch[at] = out_embed[i + 1];
    }
    if (t.n < 1 || t.batch < 1 || t.slower[0] < 1 || t.slower[1] < 1) return kInvalidSize;
    if (!set_types(t, in, out, computed_in)) return kInvalidType;
    if (rank > 1 && t.kind == Transforms::kComplexToReal) return kNotImplemented;
    set_sides(t, is_embedded);
    if (rank > 1 && (t.in.pitch[1] < t.in.count || t.out.pitch[1] < t.out.count)) {
      return kInvalidValue;
    }
    if (rank > 2 && (t.in.pitch[0] < t.slower[1] || t.out.pitch[0] < t.slower[1])) {
      return kInvalidValue;
    }
    for (const int64_t step : {t.in.stride, t.in.distance, t.out.stride, t.out.distance}) {
      if (step < 1) return kInvalidValue;
    }
    plan.tables = std::make_unique<const LibraryMemory>();
    if (plan.tables->region().data == nullptr) return kAllocFailed;
    plan.transforms = t;
    plan.is_made = true;
    *work_bytes = plan.work_bytes = work_bytes_of(t);
    return kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY int cufftSetWorkArea(int handle, void* work_area) {
  return with_plan(handle, [&](Plan& plan) {
    plan.work_area = work_area;
    return kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY int cufftSetStream(int handle, StreamHandle stream) {
  return with_plan(handle, [&](Plan& plan) {
    plan.stream = stream;
    return kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY int cufftXtExec(int handle, void* in, void* out, int direction) {
  return with_plan(handle, [&](Plan& plan) {
    const Transforms& t = plan.transforms;
    if (!plan.is_made) return kInvalidPlan;
    if (plan.context != cuop::simulator::library_context()) return kInvalidDevice;
    if (plan.work_bytes > 0 && plan.work_area == nullptr) return kNoWorkspace;
    if (in == nullptr || out == nullptr) return kInvalidValue;
    if (!is_aligned(in, t) || !is_aligned(out, t)) return kInvalidValue;
    if (t.kind == Transforms::kRealToComplex) direction = kForward;
    if (t.kind == Transforms::kComplexToReal) direction = kInverse;
    if (direction != kForward && direction != kInverse) return kInvalidValue;
    const Result result = visit(t, [&]<class In, class Out>(In, Out) {
      auto* const from = static_cast<In*>(in);
      auto* const to = static_cast<Out*>(out);
      auto* const work = plan.work_bytes > 0 ? static_cast<In*>(plan.work_area) : nullptr;
      return cuop::simulator::start_library_work(
          plan.stream,
          {region_of(t, t.in, from),
           region_of(t, t.out, to),
           {work, plan.work_bytes},
           plan.tables->region()},
          [t, from, to, work, direction] { run(t, from, to, work, direction); });
    });
    return result == Result::kSuccess ? kSuccess : kExecFailed;
  });
}
