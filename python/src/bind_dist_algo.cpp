// cuop.dist: products, element-wise work, transforms and reductions over ranks.
#include "binders.h"
#include "cuop/dist/algo/elementwise.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/pipelined.h"
#include "cuop/dist/algo/reduce.h"
#include "dist_forms.h"

namespace cuop::python {

namespace {

using dist::CallOptions;
using dist::CommunicatorPtr;
using dist::DistTensor;
using OptionalSharding = std::optional<dist::Sharding>;
using Limit = std::optional<int64_t>;

using SharedBinary = DistTensor (*)(const DistTensor&, const DistTensor&, const CallOptions&);
using RootBinary = Tensor (*)(const CommunicatorPtr&, const Tensor&, const Tensor&,
                              const CallOptions&);

void define_binary(Module& m, const char* name, SharedBinary sharded, const char* doc) {
  m.def(
      name,
      [sharded](const DistTensor& a, const DistTensor& b, std::string strategy,
                OptionalSharding output, Limit memory_limit) {
        return sharded(a, b, call_options(std::move(strategy), std::move(output), memory_limit));
      },
      "a"_a, "b"_a, nb::kw_only(), "strategy"_a = "", "output"_a = nb::none(),
      "memory_limit"_a = nb::none(), Released(), doc);
}

void define_rooted_binary(Module& m, const char* name, RootBinary rooted, const char* doc) {
  m.def(
      name,
      [name, rooted](const CommunicatorPtr& comm, MaybeTensor a, MaybeTensor b,
                     std::string strategy) {
        const std::vector<Tensor> inputs = given(comm, name, {&a, &b});
        return or_none(rooted(comm, inputs[0], inputs[1], call_options(std::move(strategy))));
      },
      "comm"_a, "a"_a.none(), "b"_a.none(), nb::kw_only(), "strategy"_a = "", Released(), doc);
}

/// All ranks hear of one whose text is unknown; the usual one costs no meeting.
ProductPath product_path(dist::Communicator& comm, std::string_view text) {
  if (text == name(ProductPath::kDense)) return ProductPath::kDense;
  return dist::make_together(comm, cat("matmul, product ", text),
                             [&] { return parse_product_path(text, "matmul"); });
}

void bind_dist_products(Module& m) {
  m.def(
      "matmul",
      [](const DistTensor& a, const DistTensor& b, std::string strategy, OptionalSharding output,
         Limit memory_limit, const std::optional<dist::Wire>& wire, std::string_view product) {
        return dist::matmul(a, b,
                            call_options(std::move(strategy), std::move(output), memory_limit),
                            wire.value_or(dist::Wire{}), product_path(a.comm(), product));
      },
      "a"_a, "b"_a, nb::kw_only(), "strategy"_a = "", "output"_a = nb::none(),
      "memory_limit"_a = nb::none(), "wire"_a = nb::none(), "product"_a = "dense", Released(),
      "a @ b over ranks: strategy \"row\", \"column\", \"block_2d\", \"k_split\", or the "
      "planner's choice. `output` says where the product is wanted, `memory_limit` how "
      "many bytes a rank may use, `wire` in what form blocks travel, `product` how they are "
      "multiplied: \"dense\", \"sparse\" (zeros of a left out) or \"auto\", by the zeros that each "
      "rank counts in its blocks. Collective.");
  m.def(
      "matmul_from_root",
      [](const CommunicatorPtr& comm, MaybeTensor a, MaybeTensor b, std::string strategy,
         const std::optional<dist::Wire>& wire, std::string_view product) {
        const std::vector<Tensor> inputs = given(comm, "matmul_from_root", {&a, &b});
        return or_none(
            dist::matmul_from_root(comm, inputs[0], inputs[1], call_options(std::move(strategy)),
                                   wire.value_or(dist::Wire{}), product_path(*comm, product)));
      },
      "comm"_a, "a"_a.none(), "b"_a.none(), nb::kw_only(), "strategy"_a = "", "wire"_a = nb::none(),
      "product"_a = "dense", Released(),
      "The product on rank 0 of matrices given there (None elsewhere).");
}

void bind_pipelined(Module& m) {
  m.def(
      "matmul_pipelined_from_root",
      [](const CommunicatorPtr& comm, MaybeTensor a, MaybeTensor b, int64_t chunks, bool overlap,
         int64_t ahead) {
        const std::vector<Tensor> inputs = given(comm, "matmul_pipelined_from_root", {&a, &b});
        return or_none(
            dist::matmul_pipelined_from_root(comm, inputs[0], inputs[1], chunks, {overlap, ahead}));
      },
      "comm"_a, "a"_a.none(), "b"_a.none(), "chunks"_a = 0, nb::kw_only(), "overlap"_a = true,
      "ahead"_a = 1, Released(),
      "The product on rank 0 of matrices given there (None elsewhere): rows of a go out, are "
      "multiplied and come back in `chunks` chunks, each while others are on their way; with 0 the "
      "planner says in how many, or that rank 0 multiplies alone. `ahead` chunks are fetched "
      "before "
      "they are needed.");
}

void bind_binaries(Module& m) {
  define_binary(m, "batch_matmul", dist::batch_matmul,
                "a [..., M, K] @ b [..., K, N] or [K, N], batches broadcast: strategy \"batch\", "
                "\"row\", \"column\", \"grid\", \"keep_a\", \"keep_b\", or the planner's choice. "
                "Collective.");
  define_binary(m, "add", dist::add,
                "a + b with broadcasting; nothing moves where they lie alike.");
  define_binary(m, "subtract", dist::subtract, "a - b with broadcasting.");
  define_binary(m, "multiply", dist::multiply, "a * b with broadcasting.");
  define_binary(m, "divide", dist::divide, "a / b with broadcasting.");
  define_rooted_binary(
      m, "batch_matmul_from_root", dist::batch_matmul_from_root,
      "The products of a batch on rank 0, of tensors given there (None elsewhere).");
  define_rooted_binary(m, "add_from_root", dist::add_from_root,
                       "The sum on rank 0 of tensors given there (None elsewhere).");
  m.def(
      "transpose_from_root",
      [](const CommunicatorPtr& comm, MaybeTensor x, int64_t dim0, int64_t dim1,
         std::string strategy) {
        return or_none(dist::transpose_from_root(comm, given(comm, "transpose", {&x})[0], dim0,
                                                 dim1, call_options(std::move(strategy))));
      },
      "comm"_a, "x"_a.none(), "dim0"_a = 0, "dim1"_a = 1, nb::kw_only(), "strategy"_a = "",
      Released(), "Two dimensions exchanged, on rank 0 of a tensor given there.");
}

void define_pencil(Module& m, const std::string& name, bool is_inverse) {
  const auto make = [name, is_inverse](std::string_view norm) {
    return std::tuple(dist::FftOptions{parse_fft_norm(norm, name.c_str()), is_inverse});
  };
  define_forms(m, name, {"x"}, dist::fft2d_pencil, dist::fft2d_pencil_from_root, make,
               {"2-D transform of a grid by rows, an all-to-all, and columns. The result stays in "
                "columns unless `output` says otherwise. Collective."},
               "norm"_a = "backward", nb::kw_only());
}

void define_fft(Module& m, const char* name, dist::FftKind kind) {
  const auto make = [name, kind](std::optional<int64_t> n, int64_t dim, std::string_view norm) {
    return std::tuple(dist::FftBatch{kind, n, dim, parse_fft_norm(norm, name)});
  };
  define_forms(
      m, name, {"x"}, dist::fft, dist::fft_from_root, make,
      {"1-D transforms along `dim`, the other dimensions split over ranks; where they are shorter "
       "than there are ranks, each over all ranks (strategy \"four_step\", of one line whose "
       "length has no near factors \"chirp\") if that is faster. Collective."},
      "n"_a = nb::none(), "dim"_a = -1, "norm"_a = "backward", nb::kw_only());
}

using MaybeShape = std::optional<Arg<Shape>>;

void define_fftn(Module& m, const char* name, dist::FftKind kind) {
  const auto make = [kind, name](MaybeShape s, MaybeShape dim, std::string_view norm) {
    return std::tuple(
        dist::FftCall{kind, converted(s), converted(dim), parse_fft_norm(norm, name)});
  };
  define_forms(
      m, name, {"x"}, dist::fftn, dist::fftn_from_root, make,
      {"Transform along the dimensions `dim` (None: as many of the last as `s` has lengths, or "
       "all), cut or padded to `s` (-1: as it is). Strategy \"keep\", \"batch\", \"slab\" (one "
       "all-to-all) or \"pencil\" (on a 2-D grid of ranks two). The result stays where the last "
       "pass makes it unless `output` says otherwise. Collective."},
      "s"_a = nb::none(), "dim"_a = nb::none(), "norm"_a = "backward", nb::kw_only());
}

void bind_fft2d(Module& m) {
  m.def(
      "fft2d_from_root",
      [](const CommunicatorPtr& comm, MaybeTensor x, std::optional<Arg<Shape>> s, Arg<Shape> dim,
         std::string_view norm, std::string strategy) {
        const Tensor input = given(comm, "fft2d", {&x})[0];
        return or_none(dist::fft2d_from_root(
            comm, input, {converted(s), *dim, {parse_fft_norm(norm, "fft2d"), false}},
            call_options(std::move(strategy))));
      },
      "comm"_a, "x"_a.none(), "s"_a = nb::none(), "dim"_a = nb::make_tuple(-2, -1),
      "norm"_a = "backward", nb::kw_only(), "strategy"_a = "", Released(),
      "2-D transforms over two of at least 3 dimensions, split over another, from and to rank 0.");
}

void define_reduction(Module& m, const char* name, ReduceKind kind) {
  const auto make = [kind](std::optional<Arg<Axes>> dim, bool keepdim, std::string_view mode) {
    return std::tuple(reduce_options(kind, dim, keepdim, mode));
  };
  define_forms(m, name, {"x"}, dist::reduce, dist::reduce_from_root, make,
               {"Reduction over `dim` (None: all, (): each element alone). mode \"plain\", "
                "\"compensated\" or \"exact\" (the same "
                "bits on any number of ranks) for sums and means. Collective."},
               "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "mode"_a = "plain");
}

}  // namespace

void bind_dist_algo(Module& m) {
  bind_dist_products(m);
  bind_pipelined(m);
  bind_binaries(m);
  define_pencil(m, "fft2d_pencil", false);
  define_pencil(m, "ifft2d_pencil", true);
  define_fft(m, "fft", dist::FftKind::kFft);
  define_fft(m, "ifft", dist::FftKind::kIfft);
  define_fft(m, "rfft", dist::FftKind::kRfft);
  define_fft(m, "irfft", dist::FftKind::kIrfft);
  define_fftn(m, "fftn", dist::FftKind::kFft);
  define_fftn(m, "ifftn", dist::FftKind::kIfft);
  define_fftn(m, "rfftn", dist::FftKind::kRfft);
  define_fftn(m, "irfftn", dist::FftKind::kIrfft);
  bind_fft2d(m);
  define_reduction(m, "sum", ReduceKind::kSum);
  define_reduction(m, "mean", ReduceKind::kMean);
  define_reduction(m, "prod", ReduceKind::kProd);
  define_reduction(m, "max", ReduceKind::kMax);
  define_reduction(m, "min", ReduceKind::kMin);
}

}  // namespace cuop::python
