// ScaLAPACK's pdgemm / psgemm and FFTW's MPI transforms, timed on data that lies over the ranks:
//
//   mpirun -np 2 rank_peers gemm float64 2048 [rounds]
//   mpirun -np 2 rank_peers fft complex128 2048 2048 [rounds]
//
// Rank 0 prints the median seconds of a call, all ranks starting together, the slowest counted.
#include <fftw3-mpi.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
int numroc_(const int* n, const int* block, const int* rank, const int* first, const int* ranks);
void descinit_(int* desc, const int* m, const int* n, const int* mb, const int* nb,
               const int* first_row, const int* first_column, const int* context, const int* lead,
               int* info);
void pdgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
             const double*, const int*, const int*, const int*, const double*, const int*,
             const int*, const int*, const double*, double*, const int*, const int*, const int*);
void psgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
             const float*, const int*, const int*, const int*, const float*, const int*, const int*,
             const int*, const float*, float*, const int*, const int*, const int*);
}

namespace {

double median_seconds(int rounds, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i <= rounds; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call();
    double mine = MPI_Wtime() - begin, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i > 0) times.push_back(slowest);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

template <class T>
std::vector<T> noise(size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = uniform(random);
  return values;
}

template <class T, class Gemm>
double gemm(int n, int rounds, Gemm run) {
  int context, rows = 1, columns, row, column, ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int r = 1; r * r <= ranks; ++r) {
    if (ranks % r == 0) rows = r;
  }
  columns = ranks / rows;
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", rows, columns);
  Cblacs_gridinfo(context, &rows, &columns, &row, &column);
  double best = 1e30;
  for (const int block : {64, 128, 256}) {
    const int zero = 0, one = 1;
    const int m_local = numroc_(&n, &block, &row, &zero, &rows);
    const int n_local = numroc_(&n, &block, &column, &zero, &columns);
    const int lead = std::max(1, m_local);
    int desc[9], info;
    descinit_(desc, &n, &n, &block, &block, &zero, &zero, &context, &lead, &info);
    const size_t count = static_cast<size_t>(m_local) * static_cast<size_t>(n_local);
    const std::vector<T> a = noise<T>(count), b = noise<T>(count);
    std::vector<T> c(count);
    const T alpha = 1, beta = 0;
    best = std::min(best, median_seconds(rounds, [&] {
                      run("N", "N", &n, &n, &n, &alpha, a.data(), &one, &one, desc, b.data(), &one,
                          &one, desc, &beta, c.data(), &one, &one, desc);
                    }));
  }
  return best;
}

/// The better of the result left transposed and not, which is said by the caller: `left_out`.
double fft(ptrdiff_t n0, ptrdiff_t n1, int rounds, bool is_left_transposed) {
  fftw_mpi_init();
  ptrdiff_t rows, first, columns, first_column;
  const ptrdiff_t count = fftw_mpi_local_size_2d_transposed(n0, n1, MPI_COMM_WORLD, &rows, &first,
                                                            &columns, &first_column);
  fftw_complex* in = fftw_alloc_complex(static_cast<size_t>(count));
  fftw_complex* out = fftw_alloc_complex(static_cast<size_t>(count));
  const unsigned flags = FFTW_MEASURE | (is_left_transposed ? FFTW_MPI_TRANSPOSED_OUT : 0U);
  const fftw_plan plan = fftw_mpi_plan_dft_2d(n0, n1, in, out, MPI_COMM_WORLD, FFTW_FORWARD, flags);
  const std::vector<double> values = noise<double>(static_cast<size_t>(2 * rows * n1));
  std::memcpy(in, values.data(), values.size() * sizeof(double));
  return median_seconds(rounds, [&] { fftw_execute(plan); });
}

double line(ptrdiff_t n, int rounds) {
  fftw_mpi_init();
  ptrdiff_t given, first, made, first_made;
  const ptrdiff_t count = fftw_mpi_local_size_1d(n, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE,
                                                 &given, &first, &made, &first_made);
  fftw_complex* in = fftw_alloc_complex(static_cast<size_t>(count));
  fftw_complex* out = fftw_alloc_complex(static_cast<size_t>(count));
  const fftw_plan plan =
      fftw_mpi_plan_dft_1d(n, in, out, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE);
  const std::vector<double> values = noise<double>(static_cast<size_t>(2 * given));
  std::memcpy(in, values.data(), values.size() * sizeof(double));
  return median_seconds(rounds, [&] { fftw_execute(plan); });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double seconds = -1;
  if (argc >= 5 && std::strcmp(argv[1], "gemm") == 0) {
    const int n = std::atoi(argv[3]), rounds = std::atoi(argv[4]);
    const bool is_double = std::strcmp(argv[2], "float64") == 0;
    seconds = is_double ? gemm<double>(n, rounds, pdgemm_) : gemm<float>(n, rounds, psgemm_);
  } else if (argc >= 5 && std::strcmp(argv[1], "line") == 0) {
    seconds = line(std::atol(argv[3]), std::atoi(argv[4]));
  } else if (argc >= 6 && std::strcmp(argv[1], "fft") == 0) {
    seconds = fft(std::atol(argv[3]), std::atol(argv[4]), std::atoi(argv[5]),
                  std::strcmp(argv[2], "columns") == 0);
  }
  if (rank == 0) std::printf("%.9f\n", seconds);
  MPI_Finalize();
  return seconds < 0 ? 2 : 0;
}
