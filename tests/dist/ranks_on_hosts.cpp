#include "tests/dist/rank_tensors.h"

const bool cuop::dist::rank_test::kRanksOnGpus = false;
