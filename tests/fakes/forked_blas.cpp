// A BLAS library with a thread of its own, as OpenBLAS has them: it stops before a fork, and the
// next product starts it again; a product while it is being stopped waits for ever. It is opened
// for as long as it takes another thread to fork. For a fork that begins meanwhile it takes its
// time to stop the thread, and then as long as it takes others to multiply.
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

/// The library's thread and what it is given. It is started and stopped under another mutex.
pthread_mutex_t starts = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_t thread;
std::atomic<bool> is_running = false;
bool is_to_stop = false;
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

void start() {
  pthread_mutex_lock(&starts);
  if (!is_running) {
    is_to_stop = false;
    is_running = pthread_create(&thread, nullptr, &serve, nullptr) == 0;
  }
  pthread_mutex_unlock(&starts);
}

void run(const std::function<void()>& work) {
  if (!is_running) start();
  pthread_mutex_lock(&mutex);
  job = &work;
  pthread_cond_broadcast(&changed);
  while (job != nullptr) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

void stop(useconds_t more_time) {
  pthread_mutex_lock(&starts);
  if (is_running) {
    pthread_mutex_lock(&mutex);
    is_to_stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, nullptr);
    usleep(more_time);
    is_running = false;
  }
  pthread_mutex_unlock(&starts);
}

void before_fork() {
  if (is_opened) return stop(0);
  is_forked_while_opened = true;
  stop(300'000);
  wait_until([] { return products > 0; });
}

/// Tells the test, by the file that it names, that it may fork now.
__attribute__((constructor)) void open_library() {
  pthread_atfork(&before_fork, nullptr, nullptr);
  start();
  if (const char* const file = std::getenv("CUOP_TEST_OPENING")) {
    const char byte = 0;
    if (write(std::atoi(file), &byte, 1) != 1) std::abort();
    wait_until([] { return is_forked_while_opened.load(); });
    usleep(100'000);  // for the fork to be amid its stop
  }
  is_opened = true;
}

}  // namespace

extern "C" {

int blas_thread_shutdown_() {
  stop(0);
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
