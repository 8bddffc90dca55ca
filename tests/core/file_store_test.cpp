#include "cuop/core/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/temporary_folder.h"

namespace cuop {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreOptions options(int64_t max_bytes = 1 << 20, double kept_part = 1.0) {
    return {directory_.string(),
            max_bytes,
            kept_part,
            {{".thing", "thing "}, {".log", "log "}},
            [this](const std::string& file) { damaged_.push_back(file); }};
  }
  /// What follows the header.
  static std::optional<std::string> load(FileStore& store, const std::string& name) {
    return store.load(store.open(FileStore::Missing::kLeave), name, [](const std::string& content) {
      return content.starts_with("thing ") ? std::optional(content.substr(6)) : std::nullopt;
    });
  }
  static std::vector<std::string> names(const FileStore& store) {
    std::vector<std::string> found;
    store.visit([&](const PrivateDirectory::File& file, const std::string&) {
      found.push_back(file.name);
    });
    return found;
  }
  void age(const std::string& name, int hours) const {
    fs::last_write_time(directory_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  const test::TemporaryFolder folder_;
  const fs::path directory_ = folder_.path() / "store";
  std::vector<std::string> damaged_;
};

TEST_F(FileStoreTest, WritesWhileOthersClear) {
  std::atomic<bool> is_over = false;
  std::thread clearer([&] {
    FileStore other(options());
    while (!is_over) other.clear();
  });
  FileStore store(options());
  std::vector<std::string> problems;
  const std::string content = "thing " + std::string(10'000, 'x');
  for (int i = 0; i < 500; ++i) {
    std::string problem = store.write("1.thing", content);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  is_over = true;
  clearer.join();
  EXPECT_THAT(problems, ElementsAre());
}

TEST_F(FileStoreTest, KeepsWhatIsWrittenForTheNextStore) {
  FileStore store(options());
  EXPECT_EQ(load(store, "1.thing"), std::nullopt);
  EXPECT_FALSE(fs::exists(directory_)) << "looking makes nothing";
  EXPECT_EQ(store.write("1.thing", "thing one"), "");
  FileStore next(options());
  EXPECT_EQ(load(next, "1.thing"), "one");
  EXPECT_EQ(load(next, "2.thing"), std::nullopt);
  EXPECT_EQ(next.damaged_count(), 0);
}

TEST_F(FileStoreTest, CountsAndTellsOfWhatCannotBeUsed) {
  FileStore store(options());
  for (const char* name : {"1.thing", "2.thing", "3.thing", "4.thing"}) {
    ASSERT_EQ(store.write(name, "thing x"), "");
  }
  std::ofstream(directory_ / "1.thing") << "another";
  ASSERT_EQ(chmod((directory_ / "2.thing").c_str(), 0622), 0);
  fs::resize_file(directory_ / "3.thing", PrivateDirectory::kMostBytes + 1);  // takes no room
  fs::rename(directory_ / "4.thing", directory_ / "elsewhere");
  fs::create_symlink("elsewhere", directory_ / "4.thing");
  for (const char* name : {"1.thing", "2.thing", "3.thing", "4.thing"}) {
    EXPECT_EQ(load(store, name), std::nullopt) << name;
    EXPECT_EQ(damaged_.back(), (directory_ / name).string());
  }
  EXPECT_EQ(store.damaged_count(), 4);
  EXPECT_TRUE(names(store).empty());
  EXPECT_EQ(store.damaged_count(), 4) << "looking is no use";
}

TEST_F(FileStoreTest, OnlyWhatIsBelievedCountsAsUsed) {
  FileStore store(options());
  for (const char* name : {"1.thing", "2.thing", "3.thing"}) store.write(name, "thing x");
  for (const int number : {1, 2, 3}) age(std::to_string(number) + ".thing", 10 + number);
  EXPECT_THAT(names(store), ElementsAre("1.thing", "2.thing", "3.thing"));
  EXPECT_EQ(load(store, "3.thing"), "x");
  store.load(store.open(FileStore::Missing::kLeave), "2.thing",
             [](const std::string&) { return std::optional<int>(); });
  EXPECT_THAT(names(store), ElementsAre("3.thing", "1.thing", "2.thing"));
}

TEST_F(FileStoreTest, ShrinksToThePartThatIsKept) {
  FileStore large(options());
  for (int i = 0; i < 9; ++i) {
    large.write(std::to_string(i) + ".thing", "thing .....");
    age(std::to_string(i) + ".thing", 20 - i);
  }
  FileStore small(options(100, 0.5));  // nine files of 11 bytes fit
  EXPECT_EQ(small.write("9.log", "log"), "") << "a name that is ours, a content that is not";
  EXPECT_EQ(small.evicted_count(), 0);
  EXPECT_EQ(small.write("a.log", "log ......."), "");
  EXPECT_EQ(small.evicted_count(), 6);
  EXPECT_THAT(names(small), ElementsAre("8.thing", "7.thing", "6.thing"));
  EXPECT_EQ(small.clear(), 3) << "entries; the log goes too";
  EXPECT_EQ(fs::directory_iterator(directory_)->path().filename(), "9.log");
}

TEST_F(FileStoreTest, LeavesNothingWhereItOnlyLooksWhetherItCould) {
  FileStoreOptions below = options();
  below.path = (directory_ / "a" / "b").string();
  FileStore store(below);
  EXPECT_EQ(store.problem(), "");
  EXPECT_FALSE(fs::exists(directory_));
  ASSERT_EQ(store.write("1.thing", "thing"), "");
  EXPECT_EQ(store.problem(), "");
  EXPECT_TRUE(fs::exists(directory_ / "a" / "b" / "1.thing"));
}

TEST_F(FileStoreTest, SaysWhyNothingCanBeWritten) {
  std::ofstream(directory_) << "a file where the directory should be";
  FileStore store(options());
  EXPECT_THAT(store.write("1.thing", "thing"), HasSubstr("is not a directory"));
  EXPECT_THAT(store.problem(), HasSubstr("is not a directory"));
}

}  // namespace
}  // namespace cuop
