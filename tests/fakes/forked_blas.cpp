// A BLAS library with a thread of its own, as OpenBLAS has them: it stops before a fork, and the
// next product starts it again. It is opened for as long as it takes another thread to fork, and a
// fork that begins meanwhile lies between its end and that of the handler for as long as it takes
// others to multiply.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>

namespace {

using Job = const std::function<void()>*;

constexpr int kPatience = 5000;  // milliseconds

std::atomic<bool> is_opened = false, is_forked_while_opened = false;
std::atomic<int> products = 0;

/// The library's thread and what it is given.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_t thread;
bool is_running = false, is_to_stop = false;
Job job = nullptr;

template <class IsSo>
void wait_until(const IsSo& is_so) {
  for (int waited = 0; !is_so() && waited < kPatience; ++waited) usleep(1000);
}

void* serve(void*) {
  pthread_mutex_lock(&mutex);
  while (!is_to_stop) {
    if (job != nullptr) {
      (*job)();
      job = nullptr;
      pthread_cond_broadcast(&changed);
    }
    pthread_cond_wait(&changed, &mutex);
  }
  pthread_mutex_unlock(&mutex);
  return nullptr;
}

void run(const std::function<void()>& work) {
  pthread_mutex_lock(&mutex);
  if (!is_running) {
    is_to_stop = false;
    is_running = pthread_create(&thread, nullptr, &serve, nullptr) == 0;
  }
  job = &work;
  pthread_cond_broadcast(&changed);
  while (job != nullptr) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

void stop() {
  pthread_mutex_lock(&mutex);
  const bool was_running = is_running;
  is_running = false;
  is_to_stop = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  if (was_running) pthread_join(thread, nullptr);
}

void before_fork() {
  stop();
  if (is_opened || is_forked_while_opened.exchange(true)) return;
  wait_until([] { return products > 0; });
}

/// Tells the test, by the file that it names, that it may fork now.
__attribute__((constructor)) void open_library() {
  pthread_atfork(&before_fork, nullptr, nullptr);
  if (const char* const file = std::getenv("CUOP_TEST_OPENING")) {
    const char byte = 0;
    if (write(std::atoi(file), &byte, 1) != 1) std::abort();
    wait_until([] { return is_forked_while_opened.load(); });
  }
  is_opened = true;
}

}  // namespace

extern "C" {

int blas_thread_shutdown_() {
  stop();
  return 0;
}

/// Row-major, neither matrix transposed.
void cblas_sgemm(int, int, int, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc) {
  run([&] {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += a[i * lda + l] * b[l * ldb + j];
        c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
      }
    }
  });
  ++products;
}
}
