#include "cuop/dist/comm/job_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "tests/temporary_folder.h"

namespace cuop::dist {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

auto refuses(const std::string& why) {
  return testing::ThrowsMessage<CommunicationError>(
      testing::AllOf(HasSubstr(why), HasSubstr("CUOP_JOB_SECRET")));
}

TEST(JobSecret, IsMadeOnceForThisUserAlone) {
  const test::TemporaryFolder folder;
  const std::string directory = folder.path() / "private";
  const std::string secret = secret_in(directory);
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(secret_in(directory), secret);
  struct stat status {};
  ASSERT_EQ(stat((directory + "/job_secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_NE(secret_in(folder.path() / "other"), secret);
}

TEST(JobSecret, AllThatAskAtOnceGetTheSame) {
  for (int round = 0; round < 10; ++round) {
    const test::TemporaryFolder folder;
    std::vector<std::string> secrets(8);
    std::vector<std::thread> threads;
    for (std::string& secret : secrets) {
      threads.emplace_back([&] { secret = secret_in(folder.path() / "private"); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set<std::string>(secrets.begin(), secrets.end()).size(), 1u);
    // No drafts are left.
    const fs::directory_iterator files(folder.path() / "private");
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  }
}

TEST(JobSecret, AFileThatOthersMayHaveReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0666}) {
    const test::TemporaryFolder folder;
    secret_in(folder.path());
    ASSERT_EQ(chmod((folder.path() / "job_secret").c_str(), mode), 0);
    EXPECT_THAT([&] { secret_in(folder.path()); }, refuses("open to other users")) << mode;
  }
}

TEST(JobSecret, WhatIsNoSecretIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "job_secret";
  for (const char* content :
       {"", "0123", "not hexadecimal digits at all, but as many of them as 64"}) {
    std::ofstream(path) << content;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    EXPECT_THAT([&] { secret_in(folder.path()); }, refuses("damaged")) << content;
  }
  fs::remove(path);
  // A link may point to what another user has chosen.
  std::ofstream(folder.path() / "other") << std::string(64, 'a');
  ASSERT_EQ(chmod((folder.path() / "other").c_str(), 0600), 0);
  fs::create_symlink("other", path);
  EXPECT_THAT([&] { secret_in(folder.path()); }, refuses("cannot be read"));
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT([&] { secret_in(folder.path()); }, refuses("no regular file"));
}

TEST(JobSecret, AnotherUsersFileIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const test::TemporaryFolder folder;
  secret_in(folder.path());
  ASSERT_EQ(chown((folder.path() / "job_secret").c_str(), 12345, 12345), 0);
  EXPECT_THAT([&] { secret_in(folder.path()); }, refuses("another user"));
}

TEST(JobSecret, ADirectoryThatOthersCanWriteIsRefused) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  EXPECT_THAT([&] { secret_in(folder.path()); }, refuses("other users"));
}

TEST(JobSecret, AShortOneIsRefused) {
  EXPECT_THAT([] { checked_secret("CUOP_JOB_SECRET", "fifteen letters"); },
              refuses("CUOP_JOB_SECRET has 15 characters"));
  EXPECT_EQ(checked_secret("CUOP_JOB_SECRET", "sixteen letters!"), "sixteen letters!");
}

}  // namespace
}  // namespace cuop::dist
