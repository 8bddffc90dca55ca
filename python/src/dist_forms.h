// The two forms of a distributed call: of tensors in parts, and of tensors on rank 0.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "define.h"
#include "dist_arguments.h"

namespace cuop::python {

/// What stubs and help say of the two.
struct FormDocs {
  const char* sharded;
  const char* rooted = "The same from and to rank 0.";
};

template <class T, size_t>
using Each = T;

/// As below, of inputs numbered 0, 1, ...
template <size_t... input, class Sharded, class Rooted, class Make, class Made, class... Arguments,
          class... Names>
void define_both(Module& m, const std::string& name, std::index_sequence<input...>,
                 const char* const* inputs, Sharded sharded, Rooted rooted, Make make,
                 Form<Made, Arguments...>, const FormDocs& docs, const Names&... names) {
  m.def(
      name.c_str(),
      [sharded, make](Each<const dist::DistTensor&, input>... x, Arguments... arguments,
                      std::string strategy, std::optional<dist::Sharding> output) {
        const dist::CallOptions call = call_options(std::move(strategy), std::move(output));
        return std::apply([&](const auto&... made) { return sharded(x..., made..., call); },
                          make(std::move(arguments)...));
      },
      nb::arg(inputs[input])..., names..., "strategy"_a = "", "output"_a = nb::none(), Released(),
      docs.sharded);
  m.def((name + "_from_root").c_str(),
        [name, rooted, make](const dist::CommunicatorPtr& comm, Each<MaybeTensor, input>... x,
                             Arguments... arguments, std::string strategy) {
          const std::vector<Tensor> tensors = given(comm, name.c_str(), {&x...});
          const dist::CallOptions call = call_options(std::move(strategy));
          return or_none(std::apply(
              [&](const auto&... made) { return rooted(comm, tensors[input]..., made..., call); },
              make(std::move(arguments)...)));
        },
        "comm"_a, nb::arg(inputs[input]).none()..., names..., "strategy"_a = "", Released(),
        docs.rooted);
}

/// Binds `name`, sharded(inputs..., made..., call), and `name`_from_root, rooted(comm, inputs...,
/// made..., call). `make(arguments...)` is the tuple of what both take beside the tensors and the
/// call's options; `names` are the arguments'.
template <size_t count, class Sharded, class Rooted, class Make, class... Names>
void define_forms(Module& m, const std::string& name, const char* const (&inputs)[count],
                  Sharded sharded, Rooted rooted, Make make, const FormDocs& docs,
                  const Names&... names) {
  define_both(m, name, std::make_index_sequence<count>(), inputs, sharded, rooted, make,
              form_of(make), docs, names...);
}

}  // namespace cuop::python
