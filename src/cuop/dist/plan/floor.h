// The time below which no plan of an operation can be: the least arithmetic, traffic of memory and
// traffic of links, shared in the best way.
//
// Worked example, a transposition of 8 MB from rank 0 to rank 0 of four ranks: memory is read and
// written, 16 MB, which takes one rank C = 1.6 ms at 10 GB/s; over a link of 4 GB/s all of it takes
// L = 2 ms. Rank 0 that does a share s of the work needs s C for it, and (1 - s) L to send the rest
// to others: with s = L / (C + L) both are the same, C L / (C + L) = 0.89 ms, and with any other
// share one of them is more. Four ranks without links would need C / 4 = 0.4 ms: the floor is 0.89.
#pragma once

#include <cstdint>
#include <optional>

#include "cuop/core/box.h"
#include "cuop/core/dtype.h"
#include "cuop/dist/cost/machine.h"
#include "cuop/dist/sharding.h"

namespace cuop::dist {

struct Floor {
  double seconds = 0;        ///< 0 where nothing has to be done
  double flops = 0;          ///< of all ranks together
  int64_t memory_bytes = 0;  ///< read and written by all ranks together
  int64_t link_bytes = 0;    ///< to or from the rank that most have to reach, in the best case
};

/// Bytes of one rank that go with work: a rank that does a share s of it must send or receive, of
/// `bytes` for all of the work, what it has or wants beyond that, share - s.
struct TiedBytes {
  double bytes = 0;
  double share = 0;    ///< of them, of the rank that alone has most of it, or that wants most
  double seconds = 0;  ///< of one rank that does all of this work
};

/// What cannot be left out.
struct Least {
  double flops = 0;        ///< of all ranks together
  double bytes = 0;        ///< read from and written to memory
  double seconds = 0;      ///< of one rank that does all of it
  TiedBytes in;            ///< of what is given
  TiedBytes out;           ///< of what is wanted
  double received = 0;     ///< bytes of the rank that receives most, whoever does the work
  bool is_rooted = false;  ///< nobody but one rank can begin before something has arrived
};

/// `flops` and `bytes` as one rank would do them; `efficiency` as of add_compute.
Least least_of(const Machine& machine, double flops, double bytes, DType dtype,
               double efficiency = 1.0);

Floor floor_of(const Least& least, const Machine& machine, int ranks);

/// The part of a tensor, or of a box of it, that the rank which has most of it has alone: 0 where
/// ranks have the same elements.
double largest_share(const Sharding& sharding, const Shape& shape);
double largest_share(const Sharding& sharding, const Shape& shape, const Box& of);
/// The part that the rank which wants most wants; 0 where it is wanted nowhere.
double wanted_share(const std::optional<Sharding>& wanted, const Shape& shape);

}  // namespace cuop::dist
