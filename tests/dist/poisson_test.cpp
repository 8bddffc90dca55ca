#include <cmath>
#include <numbers>

#include "cuop/dist/algo/row_solvers.h"
#include "tests/dist/poisson_norms.h"

namespace cuop::dist {
namespace {

using namespace rank_test;

constexpr PoissonMethod kMethods[] = {PoissonMethod::kRedBlackSor, PoissonMethod::kCg,
                                      PoissonMethod::kMultigrid, PoissonMethod::kDirect};

std::vector<Shape> shapes() {
  if (is_slow()) return {{1, 1}, {9, 5}};
  return {{1, 9}, {13, 1}, {2, 2}, {4, 7}, {3, 40}};
}

TEST(Poisson, EveryMethodSolvesEverySizeOnAnyNumberOfRanks) {
  for (const Shape& shape : shapes()) {
    const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
    for (const PoissonBoundary boundary : kPoissonBoundaries) {
      for (const PoissonMethod method : kMethods) {
        const PoissonOptions options{0.5, boundary, method, 2000, 1e-9};
        for (const int ranks : rank_counts()) {
          if (is_slow() && ranks != 4) continue;
          if (ranks == 4) continue;  // no other case than 3 and 7
          run_ranks(ranks, [&](const CommunicatorPtr& comm) {
            const std::string what = label(options, shape, ranks);
            const bool is_direct = method == PoissonMethod::kDirect;
            SolveInfo info;
            const char* strategy = ranks == 1 ? "" : is_direct ? "pencil" : "row";
            const Tensor u =
                solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs), options,
                                           &info, {.strategy = strategy, .machine = fast_wire()});
            EXPECT_EQ(u.is_defined(), comm->rank() == 0) << what;
            if (comm->rank() != 0) return;
            const Norms norms = norms_of(u, grid, rhs, options);
            const double start = norms_of(grid, grid, rhs, options).residual;
            EXPECT_LE(norms.residual, 1.1e-9 * std::max(norms.rhs, start) + 1e-12) << what;
            EXPECT_NEAR(info.residual_norm, norms.true_residual, 1e-10) << what;
            EXPECT_EQ(norms.frame, 0.0) << what;
            if (!leaves_mean_open(boundary)) return;
            EXPECT_NEAR(mean_of(u), mean_of(grid), 1e-12) << what;
            EXPECT_NEAR(info.dropped_mean, mean_of(rhs), 1e-14) << what;
          });
        }
      }
    }
  }
}

/// Values of a function of row and column.
template <class Function>
Tensor sampled(const Shape& shape, Function&& function) {
  const Tensor made = empty(shape, DType::kFloat64);
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      made.data<double>()[i * shape[1] + j] =
          function(static_cast<double>(i), static_cast<double>(j));
    }
  }
  return to_device(made, home());
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values(a), y = values(b);
  double largest = 0.0;
  for (size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

TEST(Poisson, SolutionsThatAreKnown) {
  using std::numbers::pi;
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    const auto error = [&](PoissonBoundary boundary, PoissonMethod method, double dx,
                           const Tensor& start, const Tensor& rhs, const Tensor& expected) {
      const Tensor u = solve_poisson_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs),
                                                  {dx, boundary, method, 4000, 1e-11});
      return comm->rank() == 0 ? largest_difference(u, expected) : 0.0;
    };
    for (const PoissonMethod method : kMethods) {
      if (is_slow() && method != PoissonMethod::kMultigrid) continue;
      // Harmonic and of second degree: the five points know it as it is.
      const Tensor saddle =
          sampled({9, 12}, [](double i, double j) { return i * i - j * j + i * j; });
      const Tensor frame = sampled({9, 12}, [](double i, double j) {
        const bool is_inner = i > 0 && i < 8 && j > 0 && j < 11;
        return is_inner ? 0.0 : i * i - j * j + i * j;
      });
      EXPECT_LE(error(PoissonBoundary::kDirichlet, method, 1.0, frame,
                      zeros({9, 12}, DType::kFloat64, home()), saddle),
                1e-8);
      // Errors of second order in the spacing.
      double errors[2];
      for (const int fine : {0, 1}) {
        const int64_t n = fine == 0 ? 12 : 24;
        const double h = pi / static_cast<double>(n);
        const auto wave = [&](double i, double j) {
          return std::cos((i + 0.5) * h) * std::cos(2.0 * (j + 0.5) * h);
        };
        const Tensor u = sampled({n, n}, wave);
        const Tensor rhs = sampled({n, n}, [&](double i, double j) { return -5.0 * wave(i, j); });
        errors[fine] = error(PoissonBoundary::kNeumann, method, h,
                             zeros({n, n}, DType::kFloat64, home()), rhs, u);
      }
      if (comm->rank() != 0) continue;
      EXPECT_NEAR(errors[0] / errors[1], 4.0, 0.2);
    }
  });
}

TEST(Poisson, PartsStayWhereTheyAreWantedAndLieAnyhow) {
  const Shape shape{10, 8};
  const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
  run_ranks(4, [&](const CommunicatorPtr& comm) {
    for (const Sharding& lying : matrix_shardings(4)) {
      if (is_slow() && lying.single_rank() != 3) continue;
      const DistTensor x = laid_out(comm, grid, lying), f = laid_out(comm, rhs, lying);
      for (const PoissonBoundary boundary : kPoissonBoundaries) {
        for (const PoissonMethod method : {PoissonMethod::kMultigrid, PoissonMethod::kDirect}) {
          const PoissonOptions options{0.5, boundary, method, 30, 1e-11};
          SolveInfo info;
          const Sharding columns(Mesh::line(4), split_dim(2, 1));
          const DistTensor u = solve_poisson_2d(x, f, options, &info, {.output = columns});
          EXPECT_EQ(u.sharding(), columns) << lying;
          const Norms norms = norms_of(gather_all(u), grid, rhs, options);
          EXPECT_LE(norms.residual, 1e-10 * (1.0 + norms.rhs)) << label(options, shape, 4) << lying;
          EXPECT_EQ(norms.frame, 0.0);
          EXPECT_NEAR(info.residual_norm, norms.true_residual, 1e-10);
        }
      }
      EXPECT_EQ(values(x.local().is_defined() ? x.local() : zeros({0}, DType::kFloat64)),
                values(laid_out(comm, grid, lying).local().is_defined()
                           ? laid_out(comm, grid, lying).local()
                           : zeros({0}, DType::kFloat64)));
    }
  });
}

TEST(Poisson, JacobiSweepsAsItsDefinitionSays) {
  const Shape shape{6, 9};
  const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    for (const PoissonBoundary boundary : kPoissonBoundaries) {
      const PoissonOptions options{0.5, boundary, PoissonMethod::kJacobi, 5, 0.0};
      SolveInfo info;
      const Tensor u = solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs),
                                                  options, &info, {.strategy = "row"});
      EXPECT_EQ(info.sweeps, 5);
      if (comm->rank() != 0) continue;
      // The update is the residual times dx^2 / 4, so five of them by the definition.
      std::vector<double> x = values(grid), f = values(rhs);
      const double mean = boundary == PoissonBoundary::kNeumann ? mean_of(rhs) : 0.0;
      double update = 0.0;
      for (int sweep = 0; sweep < 5; ++sweep) {
        const std::vector<double> old = x;
        update = 0.0;
        for (int64_t i = 0; i < 6; ++i) {
          for (int64_t j = 0; j < 9; ++j) {
            const bool is_frame = i == 0 || j == 0 || i == 5 || j == 8;
            if (boundary == PoissonBoundary::kDirichlet && is_frame) continue;
            const auto at = [&](int64_t k, int64_t l) {
              if (boundary == PoissonBoundary::kPeriodic) k = (k + 6) % 6, l = (l + 9) % 9;
              if (boundary == PoissonBoundary::kNeumann) {
                k = std::clamp<int64_t>(k, 0, 5), l = std::clamp<int64_t>(l, 0, 8);
              }
              return k < 0 || l < 0 || k > 5 || l > 8 ? 0.0 : old[static_cast<size_t>(k * 9 + l)];
            };
            const auto here = static_cast<size_t>(i * 9 + j);
            x[here] = (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) -
                       0.25 * (f[here] - mean)) /
                      4.0;
            update += (x[here] - old[here]) * (x[here] - old[here]);
          }
        }
      }
      const std::vector<double> made = values(u);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(made[i], x[i], 1e-13);
      EXPECT_NEAR(info.update_norm, std::sqrt(update), 1e-13);
    }
    // Ends with the first sweep whose update is below.
    SolveInfo info;
    solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs),
                               {0.5, PoissonBoundary::kNeumann, PoissonMethod::kJacobi, 300, 0.05},
                               &info);
    EXPECT_LT(info.update_norm, 0.05);
    SolveInfo before;
    solve_poisson_2d_from_root(
        comm, on_root(comm, grid), on_root(comm, rhs),
        {0.5, PoissonBoundary::kNeumann, PoissonMethod::kJacobi, info.sweeps - 1, 0.05}, &before);
    EXPECT_GE(before.update_norm, 0.05);
  });
}

TEST(Poisson, EndsWhereRoundingIsAllThatIsLeft) {
  const Shape shape = is_slow() ? Shape{12, 12} : Shape{60, 60};
  const Tensor grid = noise(shape, DType::kFloat32), rhs = noise(shape, DType::kFloat32, 3);
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    for (const PoissonMethod method : {PoissonMethod::kCg, PoissonMethod::kMultigrid}) {
      SolveInfo info;
      const PoissonOptions options{1.0, PoissonBoundary::kZero, method, 2000, 0.0};
      const Tensor u =
          solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs), options, &info);
      EXPECT_LT(info.sweeps, method == PoissonMethod::kCg ? 1000 : 20);
      EXPECT_LT(info.residual_norm, 2e-3);
      if (comm->rank() != 0) continue;
      EXPECT_EQ(u.dtype(), DType::kFloat32);
    }
  });
}

/// Given edges are a part of what is solved for: a residual far below them is lost in rounding.
TEST(Poisson, TheToleranceIsOfRhsLessTheGivenEdges) {
  const int64_t n = 12;
  const double dx = 0.01, tolerance = 1e-5;
  const Tensor grid = multiply(noise({n, n}, DType::kFloat32), 100.0);
  const Tensor rhs = noise({n, n}, DType::kFloat32, 2);
  const std::vector<double> u = values(grid), f = values(rhs);
  double square = 0.0;
  const auto edge = [&](int64_t row, int64_t column) {
    const bool is_edge = row == 0 || column == 0 || row == n - 1 || column == n - 1;
    return is_edge ? u[static_cast<size_t>(row * n + column)] : 0.0;
  };
  for (int64_t row = 1; row < n - 1; ++row) {
    for (int64_t column = 1; column < n - 1; ++column) {
      const double around = edge(row - 1, column) + edge(row + 1, column) + edge(row, column - 1) +
                            edge(row, column + 1);
      square += std::pow(f[static_cast<size_t>(row * n + column)] - around / (dx * dx), 2);
    }
  }
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    for (const PoissonMethod method :
         {PoissonMethod::kRedBlackSor, PoissonMethod::kCg, PoissonMethod::kMultigrid}) {
      SolveInfo info;
      solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs),
                                 {dx, PoissonBoundary::kDirichlet, method, 500, tolerance}, &info);
      EXPECT_LE(info.residual_norm, 1.01 * tolerance * std::sqrt(square));
      EXPECT_LT(info.sweeps, 500);
    }
  });
}

TEST(Poisson, NothingToDo) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const auto solve = [&](const Shape& shape, PoissonOptions options, SolveInfo* info) {
      const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
      const Tensor u =
          solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs), options, info);
      expect_rooted(comm, u, grid, 0, cat(shape));
    };
    SolveInfo info;
    for (const PoissonMethod method :
         {PoissonMethod::kRedBlackSor, PoissonMethod::kCg, PoissonMethod::kMultigrid}) {
      for (const Shape& shape : {Shape{0, 5}, Shape{4, 0}}) {
        for (const PoissonBoundary boundary : kPoissonBoundaries) {
          solve(shape, {1.0, boundary, method, 10, 1e-6}, &info);
          EXPECT_EQ(info.residual_norm, 0.0);
        }
      }
      for (const Shape& shape : {Shape{2, 5}, Shape{5, 2}, Shape{1, 1}}) {
        solve(shape, {1.0, PoissonBoundary::kDirichlet, method, 10, 1e-6}, &info);
      }
      solve({5, 6}, {1.0, PoissonBoundary::kZero, method, 0, 1e-6}, &info);
      EXPECT_GT(info.residual_norm, 0.1);
      // A solution stays one.
      const Tensor none = zeros({5, 6}, DType::kFloat64, home());
      const Tensor u =
          solve_poisson_2d_from_root(comm, on_root(comm, none), on_root(comm, none),
                                     {1.0, PoissonBoundary::kNeumann, method, 10, 1e-6}, &info);
      expect_rooted(comm, u, none, 0, "zeros");
      EXPECT_EQ(info.sweeps, 0);
    }
  });
}

TEST(Poisson, TheBestFactor) {
  // Of 1 x 1 a sweep solves at once; of n x n Young's formula is 2 / (1 + sin(pi / (n + 1))).
  EXPECT_DOUBLE_EQ(best_factor({1, 1}), 1.0);
  EXPECT_NEAR(best_factor({9, 9}), 2.0 / (1.0 + std::sin(std::numbers::pi / 10.0)), 1e-12);
  for (const AxisEnds ends : {AxisEnds::kPeriodic, AxisEnds::kZeroFlux}) {
    EXPECT_DOUBLE_EQ(best_factor({1, 1, 1.0, 1.0, ends}), 1.0);
    EXPECT_LT(best_factor({1, 50, 1.0, 1.0, ends}), 2.0);
    EXPECT_LT(best_factor({8, 8, 1.0, 1.0, ends}), best_factor({8, 16, 1.0, 1.0, ends}));
  }
}

TEST(Poisson, WhatIsWrongIsSaidOnAllRanks) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor grid = on_root(comm, noise({4, 4})), line = on_root(comm, noise({4}));
    const auto expect_said = [&](const Tensor& x, const Tensor& f, const PoissonOptions& options,
                                 const std::string& strategy, const std::string& expected) {
      const std::string said = failure_of([&] {
        solve_poisson_2d_from_root(comm, x, f, options, nullptr, {.strategy = strategy});
      });
      EXPECT_NE(said.find(expected), std::string::npos) << said;
    };
    for (const PoissonBoundary boundary : kPoissonBoundaries) {
      const PoissonOptions options{1.0, boundary};
      expect_said(grid, on_root(comm, noise({4, 5})), options, "",
                  "grid (4, 4) and rhs (4, 5) were given; needed are two of one shape (h, w)");
      expect_said(line, line, options, "", "needed are two of one shape (h, w)");
      expect_said(grid, on_root(comm, noise({4, 4}, DType::kFloat32)), options, "",
                  "grid is float64, rhs is float32");
      expect_said(grid, Tensor(), options, "", "rhs was not given");
      expect_said(grid, grid, {0.0, boundary}, "", "must be above 0");
      expect_said(grid, grid, {1.0, boundary, PoissonMethod::kCg, -1}, "", "0 or more");
      for (const PoissonMethod method : {PoissonMethod::kJacobi, PoissonMethod::kRedBlackSor,
                                         PoissonMethod::kCg, PoissonMethod::kMultigrid}) {
        expect_said(grid, grid, {1.0, boundary, method, 9, NAN}, "",
                    "tolerance nan was given; it must be 0 or more");
      }
      expect_said(grid, grid, options, "column", "there is no strategy \"column\"");
    }
    expect_said(on_root(comm, noise({4, 4}, DType::kFloat16)),
                on_root(comm, noise({4, 4}, DType::kFloat16)), {}, "",
                "needed is float32 or float64");
    // The ranks can go on.
    EXPECT_EQ(failure_of([&] { solve_poisson_2d_from_root(comm, grid, grid); }), "");
  });
  EXPECT_EQ(parse_poisson_boundary("neumann", "f"), PoissonBoundary::kNeumann);
  EXPECT_EQ(parse_poisson_method("rb-sor", "f"), PoissonMethod::kRedBlackSor);
  const std::string said = failure_of([] { parse_poisson_method("sor", "f"); });
  EXPECT_EQ(said, "f: method 'sor' is unknown; known are jacobi, rb-sor, cg, multigrid, direct");
}

}  // namespace
}  // namespace cuop::dist
