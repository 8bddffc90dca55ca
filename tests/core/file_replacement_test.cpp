#include "cuop/core/file_replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cuop/core/error.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace cuop {
namespace {

namespace fs = std::filesystem;

class FileReplacementTest : public ::testing::Test {
 protected:
  static void replace(const fs::path& path, const std::string& content) {
    FileReplacement file("test", path.string());
    file.write(content);
    file.commit();
  }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static mode_t mode(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 0777u;
  }
  int64_t file_count() const {
    return std::distance(fs::directory_iterator(root_), fs::directory_iterator());
  }
  static std::string error(const fs::path& path) {
    return test::error_of<ExecutionError>([&] { replace(path, "x"); });
  }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(FileReplacementTest, IsCompleteOrNotThere) {
  const fs::path path = root_ / "file";
  {
    FileReplacement file("test", path.string());
    file.write("half");
  }
  EXPECT_EQ(file_count(), 0);
  replace(path, "whole");
  {
    FileReplacement file("test", path.string());
    file.write("half");
    EXPECT_EQ(content(path), "whole");
  }
  EXPECT_EQ(content(path), "whole");
  replace(path, "new");
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(file_count(), 1);
}

TEST_F(FileReplacementTest, AFullDiskLeavesWhatWasThere) {
  const fs::path path = root_ / "file";
  replace(path, "whole");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(replace(path, std::string(5000, 'x')), ExecutionError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(content(path), "whole");
  EXPECT_EQ(file_count(), 1);
}

TEST_F(FileReplacementTest, PassesPermissionsOn) {
  const mode_t before = umask(027);
  replace(root_ / "new", "");
  umask(before);
  EXPECT_EQ(mode(root_ / "new"), 0640u);
  for (const mode_t kept : {0600u, 0604u, 0666u, 0755u}) {
    ASSERT_EQ(chmod((root_ / "new").c_str(), kept), 0);
    replace(root_ / "new", "again");
    EXPECT_EQ(mode(root_ / "new"), kept);
  }
}

TEST_F(FileReplacementTest, KeepsLinksAndSaysWhatCannotBeReplaced) {
  replace(root_ / "file", "old");
  fs::create_symlink("file", root_ / "link");
  replace(root_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(content(root_ / "file"), "new");

  using ::testing::HasSubstr;
  fs::create_symlink("loop", root_ / "loop");
  fs::create_symlink("nowhere", root_ / "dangling");
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error(root_), HasSubstr("is a directory, needed is a file name"));
  EXPECT_THAT(error(root_ / "pipe"), HasSubstr("is no ordinary file"));
  EXPECT_THAT(error(root_ / "loop"), HasSubstr("loop"));
  EXPECT_THAT(error(root_ / "dangling"), HasSubstr("is a link that leads to no file"));
  EXPECT_THAT(error(root_ / "no" / "folder"), HasSubstr("cannot be written: No such file"));
  EXPECT_THAT(error(root_ / "file" / "below"), HasSubstr("cannot be written"));
  EXPECT_THAT(error(""), HasSubstr("test: "));
  EXPECT_THAT(error(std::string("a\0b", 3)), HasSubstr("zero byte"));
}

}  // namespace
}  // namespace cuop
