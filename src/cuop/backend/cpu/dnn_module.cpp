// The part of the oneDNN adapter that needs oneDNN's headers (2.6 or later, or 3): a module with a
// C interface, see dnn_abi.h.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#if __has_include(<oneapi/dnnl/dnnl.hpp>)
#include <oneapi/dnnl/dnnl.hpp>
#else
#include <dnnl.hpp>
#endif

#include "cuop/backend/cpu/dnn_abi.h"
#include "cuop/core/lru_cache.h"

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#endif

namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  // Never destroyed: threads may compute while the process ends.
  static const auto& cpu = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// Gives the calling thread `count` threads for the life of this object. OpenMP keeps the setting
/// for each thread, so ranks that are threads do not disturb each other. oneDNN's other runtimes
/// take their threads from elsewhere; `cuop_dnn_version` names the runtime.
class ThreadScope {
 public:
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
  explicit ThreadScope(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~ThreadScope() { omp_set_num_threads(before_); }

 private:
  int before_;
#else
  explicit ThreadScope(int) {}
#endif
};

memory::dims tail(const CuopDnnConv::Axes& values, int64_t spatial) {
  return memory::dims(values.end() - spatial, values.end());
}

memory::dims joined(std::initializer_list<int64_t> head, const memory::dims& spatial) {
  memory::dims all(head);
  all.insert(all.end(), spatial.begin(), spatial.end());
  return all;
}

memory::dims row_major(const memory::dims& sizes) {
  memory::dims strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

memory::desc plain(const memory::dims& sizes) {
  return {sizes, memory::data_type::f32, row_major(sizes)};
}
memory::desc chosen_by_library(const memory::dims& sizes) {
  return {sizes, memory::data_type::f32, memory::format_tag::any};
}

dnnl::convolution_forward::primitive_desc describe(const CuopDnnConv& p, const memory::desc& x,
                                                   const memory::desc& w, const memory::desc& bias,
                                                   const memory::desc& y) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // one primitive, many callers
  memory::dims dilation = tail(p.dilation, p.spatial);
  for (auto& value : dilation) --value;  // oneDNN counts the elements that are skipped
  const memory::dims stride = tail(p.stride, p.spatial), before = tail(p.padding, p.spatial);
  memory::dims after;
  for (int64_t i = 3 - p.spatial; i < 3; ++i) {
    after.push_back((p.out[i] - 1) * p.stride[i] + (p.kernel[i] - 1) * p.dilation[i] + 1 - p.in[i] -
                    p.padding[i]);
  }
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_auto;
#if DNNL_VERSION_MAJOR >= 3
  if (p.has_bias) {
    return {engine(), kind, algorithm, x, w, bias, y, stride, dilation, before, after, attributes};
  }
  return {engine(), kind, algorithm, x, w, y, stride, dilation, before, after, attributes};
#else
  using Descriptor = dnnl::convolution_forward::desc;
  const auto descriptor =
      p.has_bias ? Descriptor(kind, algorithm, x, w, bias, y, stride, dilation, before, after)
                 : Descriptor(kind, algorithm, x, w, y, stride, dilation, before, after);
  return {descriptor, attributes, engine()};
#endif
}

bool is_one(int64_t value) { return value == 1; }

/// With a kernel of 1 and stride 1: nothing is padded.
bool keeps_size(const CuopDnnConv& p) { return p.in == p.out; }

/// Weights in the library's formats, kept while they do not change.
struct KeptWeights {
  std::mutex mutex;
  std::vector<memory> forms;
};

/// What one call needs of the library: its stream, the caller's arrays as it names them, inputs and
/// output in its own formats, and scratch. Kept between calls, because making them costs as much as
/// a small convolution's launch.
struct Workspace {
  dnnl::stream stream;
  memory given_x, given_w, given_bias, given_y;
  memory x, w, y;
  std::unordered_map<int, memory> arguments;  ///< of the convolution
};

/// A convolution prepared for its sizes; any number of threads may run it at once.
class PreparedConv {
 public:
  explicit PreparedConv(const CuopDnnConv& p) : has_bias_(p.has_bias != 0) {
    const memory::dims in = tail(p.in, p.spatial), kernel = tail(p.kernel, p.spatial);
    const memory::dims out = tail(p.out, p.spatial);
    const memory::dims x = joined({p.batch, p.in_channels}, in);
    const memory::dims y = joined({p.batch, p.out_channels}, out);
    const memory::dims w = p.groups == 1 ? joined({p.out_channels, p.in_channels}, kernel)
                                         : joined({p.groups, p.group_out(), p.group_in()}, kernel);
    x_ = plain(x);
    w_ = plain(w);
    y_ = plain(y);
    bias_ = plain({p.out_channels});
    // A pointwise convolution is one product of row-major matrices: reordering them would cost more
    // than the library's formats gain.
    const bool is_pointwise = std::all_of(kernel.begin(), kernel.end(), is_one) &&
                              std::all_of(p.stride.begin(), p.stride.end(), is_one) &&
                              keeps_size(p);
    conv_ = describe(p, is_pointwise ? x_ : chosen_by_library(x),
                     is_pointwise ? w_ : chosen_by_library(w), bias_,
                     is_pointwise ? y_ : chosen_by_library(y));
    run_ = dnnl::convolution_forward(conv_);
    if (conv_.src_desc() != x_) x_in_ = reorder(x_, conv_.src_desc());
    if (conv_.weights_desc() != w_) w_in_ = reorder(w_, conv_.weights_desc());
    if (conv_.dst_desc() != y_) y_out_ = reorder(conv_.dst_desc(), y_);
  }

  void run(const float* x, const float* w, const float* bias, float* y, KeptWeights* kept) {
    std::unique_ptr<Workspace> space = take(kept == nullptr);
    dnnl::stream& stream = space->stream;
    point(space->given_x, x);
    point(space->given_w, w);
    point(space->given_y, y);
    if (has_bias_) point(space->given_bias, bias);
    move_in(stream, x_in_, space->given_x, space->x);
    if (w_in_) space->arguments[DNNL_ARG_WEIGHTS] = weights(*space, kept);
    run_.execute(stream, space->arguments);
    move_in(stream, y_out_, space->y, space->given_y);
    stream.wait();
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(space));
  }

  size_t idle_bytes() {
    const std::lock_guard lock(mutex_);
    return idle_.size() * workspace_bytes();
  }

  /// Bytes of one workspace.
  size_t workspace_bytes() const {
    return (x_in_ ? conv_.src_desc().get_size() : 0) + conv_.weights_desc().get_size() +
           (y_out_ ? conv_.dst_desc().get_size() : 0) + conv_.scratchpad_desc().get_size();
  }

 private:
  static dnnl::reorder reorder(const memory::desc& from, const memory::desc& to) {
    return dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to));
  }

  // oneDNN takes inputs by pointers without const and does not write them.
  static void point(memory& name, const float* data) {
    name.set_data_handle(const_cast<float*>(data));
  }

  /// Fills `to` from `from` where there is something to reorder.
  static void move_in(dnnl::stream& stream, const dnnl::reorder& reorder, const memory& from,
                      const memory& to) {
    if (reorder) reorder.execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// The weights in the library's formats.
  memory weights(Workspace& space, KeptWeights* kept) const {
    if (kept == nullptr) {
      move_in(space.stream, w_in_, space.given_w, space.w);
      return space.w;
    }
    const std::lock_guard lock(kept->mutex);
    for (const memory& form : kept->forms) {
      if (form.get_desc() == conv_.weights_desc()) return form;
    }
    const memory form(conv_.weights_desc(), engine());
    move_in(space.stream, w_in_, space.given_w, form);
    space.stream.wait();
    kept->forms.push_back(form);
    return form;
  }

  std::unique_ptr<Workspace> take(bool needs_weights) {
    std::unique_ptr<Workspace> space = take_idle();
    if (needs_weights && w_in_ && !space->w) space->w = memory(conv_.weights_desc(), engine());
    return space;
  }

  std::unique_ptr<Workspace> take_idle() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Workspace> space = std::move(idle_.back());
        idle_.pop_back();
        return space;
      }
    }
    auto space = std::make_unique<Workspace>();
    space->stream = dnnl::stream(engine());
    space->given_x = memory(x_, engine(), nullptr);
    space->given_w = memory(w_, engine(), nullptr);
    space->given_y = memory(y_, engine(), nullptr);
    if (has_bias_) space->given_bias = memory(bias_, engine(), nullptr);
    if (x_in_) space->x = memory(conv_.src_desc(), engine());
    if (y_out_) space->y = memory(conv_.dst_desc(), engine());
    space->arguments = {{DNNL_ARG_SRC, x_in_ ? space->x : space->given_x},
                        {DNNL_ARG_WEIGHTS, space->given_w},
                        {DNNL_ARG_DST, y_out_ ? space->y : space->given_y},
                        {DNNL_ARG_SCRATCHPAD, memory(conv_.scratchpad_desc(), engine())}};
    if (has_bias_) space->arguments[DNNL_ARG_BIAS] = space->given_bias;
    return space;
  }

  bool has_bias_;
  memory::desc x_, w_, y_, bias_;
  dnnl::convolution_forward::primitive_desc conv_;
  dnnl::convolution_forward run_;
  dnnl::reorder x_in_, w_in_, y_out_;  ///< empty where the formats are the same
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

/// The convolutions used last, within a count and a size.
class Cache {
 public:
  std::shared_ptr<PreparedConv> get(const CuopDnnConv& problem) {
    const std::lock_guard lock(mutex_);
    const std::string key(reinterpret_cast<const char*>(&problem), sizeof problem);
    if (const auto* known = entries_.find(key)) return *known;
    const auto made = std::make_shared<PreparedConv>(problem);
    entries_.put(key, made);
    while (entries_.size() > 1 && workspace_bytes() > kBytes) entries_.take_last();
    return made;
  }

  /// Returns the bytes of idle workspaces that were dropped.
  size_t clear() {
    const std::lock_guard lock(mutex_);
    size_t bytes = 0;
    entries_.visit([&](const auto& entry) { bytes += entry->idle_bytes(); });
    entries_.clear();
    return bytes;
  }

 private:
  size_t workspace_bytes() const {
    size_t bytes = 0;
    entries_.visit([&](const auto& entry) { bytes += entry->workspace_bytes(); });
    return bytes;
  }

  static constexpr size_t kBytes = size_t{512} << 20;
  std::mutex mutex_;
  cuop::LruCache<std::string, std::shared_ptr<PreparedConv>> entries_{64};
};

Cache& cache() {
  // Never destroyed: threads may compute while the process ends.
  static auto& instance = *new Cache;
  return instance;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* cuop_dnn_version() {
  static const std::string text = [] {
    const dnnl_version_t* v = dnnl_version();
    const char* threads = v->cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                          : v->cpu_runtime == DNNL_RUNTIME_TBB ? "TBB, threads not controlled"
                          : v->cpu_runtime == DNNL_RUNTIME_SEQ ? "one thread"
                                                               : "threads not controlled";
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch) + ", " + threads;
  }();
  return text.c_str();
}

__attribute__((visibility("default"))) int cuop_dnn_conv(const CuopDnnConv* problem, const float* x,
                                                         const float* w, const float* bias,
                                                         float* y, void* kept, char* error,
                                                         int64_t size) {
  try {
    const ThreadScope threads(static_cast<int>(problem->threads));
    cache().get(*problem)->run(x, w, bias, y, static_cast<KeptWeights*>(kept));
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(error, static_cast<size_t>(size), "%s", e.what());
    return 1;
  }
}

__attribute__((visibility("default"))) void* cuop_dnn_new_weights() { return new KeptWeights; }

__attribute__((visibility("default"))) void cuop_dnn_free_weights(void* kept) {
  delete static_cast<KeptWeights*>(kept);
}

__attribute__((visibility("default"))) int64_t cuop_dnn_release() {
  return static_cast<int64_t>(cache().clear());
}
}
