#include "cuop/memory/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "tests/temporary_folder.h"

namespace cuop::memory {
namespace {

constexpr int64_t kBytes = int64_t{1} << 20;

class Mapped : public ::testing::Test {
 protected:
  Mapped() {
    std::ofstream(path_) << std::string(kBytes, 'x');
    descriptor_ = open(path_.c_str(), O_RDONLY);
  }
  ~Mapped() override { close(descriptor_); }

  static int64_t count(const MappedFile& file, int64_t bytes) {
    const auto* text = static_cast<const volatile char*>(file.data());
    int64_t found = 0;
    for (int64_t i = 0; i < bytes; ++i) found += text[i] == 'x' ? 1 : 0;
    return found;
  }

  test::TemporaryFolder folder_;
  std::string path_ = (folder_.path() / "file").string();
  int descriptor_ = -1;
};

TEST_F(Mapped, HoldsTheBytesAfterTheFileIsClosedAndGone) {
  for (const int64_t offset : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{5000}}) {
    const MappedFile file(descriptor_, offset, kBytes - offset, path_);
    EXPECT_EQ(count(file, kBytes - offset), kBytes - offset);
    EXPECT_FALSE(cut_off_file(file.data()));
  }
  const MappedFile file(descriptor_, 0, kBytes, path_);
  std::filesystem::remove(path_);
  EXPECT_EQ(count(file, kBytes), kBytes);
}

TEST_F(Mapped, LostPagesReadAsZerosAndAreTold) {
  const auto file = std::make_unique<MappedFile>(descriptor_, 100, kBytes - 100, path_);
  const uint64_t before = lost_page_count();
  std::filesystem::resize_file(path_, 8192);
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] { EXPECT_EQ(count(*file, kBytes - 100), 8192 - 100); });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(lost_page_count(), before);
  const auto* last = static_cast<const char*>(file->data()) + kBytes - 101;
  EXPECT_EQ(cut_off_file(last), path_);
  EXPECT_EQ(cut_off_file(nullptr), path_);
  EXPECT_FALSE(cut_off_file(&before));
}

TEST_F(Mapped, ALossIsForgottenWithTheMapping) {
  {
    const MappedFile file(descriptor_, 0, kBytes, path_);
    std::filesystem::resize_file(path_, 0);
    EXPECT_EQ(count(file, kBytes), 0);
  }
  EXPECT_FALSE(cut_off_file(nullptr));
  std::ofstream(path_) << std::string(kBytes, 'x');
  const MappedFile again(descriptor_, 0, kBytes, path_);
  EXPECT_EQ(count(again, kBytes), kBytes);
  EXPECT_FALSE(cut_off_file(again.data()));
}

TEST_F(Mapped, AShorterFileIsTold) {
  EXPECT_THROW(MappedFile(descriptor_, 0, kBytes + 1, path_), ExecutionError);
  EXPECT_THROW(MappedFile(descriptor_, kBytes, 1, path_), ExecutionError);
  EXPECT_THROW(MappedFile(descriptor_, -1, 1, path_), ExecutionError);
  EXPECT_THROW(MappedFile(-1, 0, 1, path_), ExecutionError);
  const MappedFile file(descriptor_, 0, kBytes, path_);
  std::filesystem::resize_file(path_, kBytes - 1);  // within the last page: no signal comes
  EXPECT_EQ(count(file, kBytes), kBytes - 1);
  EXPECT_EQ(cut_off_file(file.data()), path_);
}

TEST_F(Mapped, OtherBusErrorsStillEndTheProcess) {
  const MappedFile file(descriptor_, 0, kBytes, path_);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_DEATH(raise(SIGBUS), "Sanitizer:DEADLYSIGNAL");  // theirs was there before ours
#else
  EXPECT_EXIT(raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(kill(getpid(), SIGBUS), ::testing::KilledBySignal(SIGBUS), "");  // as another process
#endif
}

}  // namespace
}  // namespace cuop::memory
