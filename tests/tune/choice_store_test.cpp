#include "cuop/tune/choice_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"

namespace cuop::tune {
namespace {

namespace fs = std::filesystem;

class ChoiceStoreTest : public ::testing::Test {
 protected:
  std::string directory() const { return root_ + "/store"; }
  int64_t file_count() const {
    int64_t count = 0;
    if (fs::exists(directory())) {
      for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory())) ++count;
    }
    return count;
  }

  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(ChoiceStoreTest, WhatWasSavedIsFoundByItsKeyOnly) {
  ChoiceStore store(directory(), 1 << 20);
  EXPECT_FALSE(store.load("a").has_value());
  EXPECT_FALSE(fs::exists(directory()));  // looking makes nothing
  store.save("key \"a\"\n", {"tiled/32", 1.25, 0.125, 9});
  const auto found = ChoiceStore(directory(), 1 << 20).load("key \"a\"\n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, "tiled/32");
  EXPECT_EQ(found->made_in_ms, 1.25);
  EXPECT_EQ(found->gain, 0.125);
  EXPECT_EQ(found->rounds, 9);
  EXPECT_FALSE(store.load("key").has_value());
  EXPECT_EQ(store.damaged_count(), 0);
  store.save("key \"a\"\n", {"simple", 2.0});
  EXPECT_EQ(store.load("key \"a\"\n")->value, "simple");
  EXPECT_EQ(file_count(), 1);
}

TEST_F(ChoiceStoreTest, ListsWhatCanBeUsedTheLastUsedFirst) {
  ChoiceStore store(directory(), 1 << 20);
  EXPECT_TRUE(store.entries().empty());
  store.save("old \"key\" \\", {"tiled", 1.0, 0.0, 9});
  store.save("new", {"simple", 2.0, 0.5, 9});
  store.save("damaged", {"simple", 2.0, 0.5, 9});
  std::ofstream(store.path("damaged"), std::ios::app) << "x";
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(store.path("old \"key\" \\"), now - std::chrono::hours(1));
  fs::copy_file(store.path("new"), directory() + "/0123456789abcdef.choice.json");
  const auto entries = store.entries();
  ASSERT_EQ(entries.size(), 2U);  // neither the damaged one nor the one under a foreign name
  EXPECT_EQ(entries[0].key, "new");
  EXPECT_EQ(entries[0].choice.value, "simple");
  EXPECT_EQ(entries[0].choice.gain, 0.5);
  EXPECT_EQ(entries[1].key, "old \"key\" \\");
  EXPECT_NEAR(static_cast<double>(entries[0].used - entries[1].used), 3600.0, 60.0);
}

TEST_F(ChoiceStoreTest, AnyChangedByteMakesTheFileAbsentAndCounted) {
  ChoiceStore store(directory(), 1 << 20);
  store.save("key", {"tiled", 1.0});
  std::ifstream in(store.path("key"));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    std::ofstream(store.path("key"), std::ios::trunc) << changed;
    EXPECT_FALSE(store.load("key").has_value()) << i;
    std::ofstream(store.path("key"), std::ios::trunc) << text.substr(0, i);
    EXPECT_FALSE(store.load("key").has_value()) << i;
  }
  EXPECT_EQ(store.damaged_count(), static_cast<int64_t>(2 * text.size()));
  store.save("key", {"tiled", 1.0});
  EXPECT_TRUE(store.load("key").has_value());
}

TEST_F(ChoiceStoreTest, FilesKeepTheirForm) {
  ChoiceStore store(directory(), 1 << 20);
  const std::string key = R"(gemm "a" \ b)";
  store.save(key, {"tiled/32", 1234.5678, 0.125, 9});
  EXPECT_TRUE(store.path(key).ends_with("/dbfe2533f41587b4.choice.json"));
  std::ifstream in(store.path(key));
  EXPECT_EQ(
      std::string((std::istreambuf_iterator<char>(in)), {}),
      R"({"schema":2,"key":"gemm \"a\" \\ b","made_in_ms":1234.57,"gain":0.125,"rounds":9,"choice":"tiled/32","checksum":"95890ea33b6eb829"})"
      "\n");
}

TEST_F(ChoiceStoreTest, AnyTextComesBackAsItWas) {
  using namespace std::string_literals;
  ChoiceStore store(directory(), 1 << 20);
  const std::string texts[] = {
      ""s,       "\"},{\"choice\":\""s,           "\",\"checksum\":\"0\"}\n"s, "a\0b\x01\x1f\n\t"s,
      "\\\"\\"s, "\xc3\xa9\xf0\x9f\x98\x80 \x7f"s};
  for (const std::string& text : texts) {
    store.save(text, {text, 1.0});
    ASSERT_TRUE(store.load(text).has_value()) << text;
    EXPECT_EQ(store.load(text)->value, text);
  }
  const auto entries = store.entries();
  EXPECT_EQ(entries.size(), std::size(texts));
  for (const auto& entry : entries) EXPECT_EQ(entry.key, entry.choice.value);
  // What is no UTF-8 is found by its key, but is not a text that a list could show.
  store.save("s\xfd", {"v\xfd", 1.0});
  EXPECT_EQ(store.load("s\xfd")->value, "v\xef\xbf\xbd");
  EXPECT_EQ(store.entries().size(), entries.size());
  EXPECT_EQ(store.damaged_count(), 0);
}

TEST_F(ChoiceStoreTest, TheLeastRecentlyUsedGoFirst) {
  ChoiceStore large(directory(), 1 << 20);
  large.save("key 0", {"tiled", 1.0});
  const auto bytes = static_cast<int64_t>(fs::file_size(large.path("key 0")));
  ChoiceStore store(directory(), 3 * bytes + bytes / 2);
  const auto now = fs::file_time_type::clock::now();
  for (int i = 1; i < 3; ++i) store.save("key " + std::to_string(i), {"tiled", 1.0});
  for (int i = 0; i < 3; ++i) {
    fs::last_write_time(store.path("key " + std::to_string(i)), now - std::chrono::hours(10 - i));
  }
  EXPECT_TRUE(store.load("key 0").has_value());  // now the most recently used
  store.save("key 3", {"tiled", 1.0});
  EXPECT_EQ(file_count(), 3);
  EXPECT_TRUE(store.load("key 0").has_value());
  EXPECT_FALSE(store.load("key 1").has_value());
  EXPECT_EQ(store.clear(), 3);
  EXPECT_EQ(file_count(), 0);
}

TEST_F(ChoiceStoreTest, TouchesNoFileOfAStranger) {
  ChoiceStore store(directory(), 1);
  ASSERT_EQ(store.make_directory(), "");
  const std::pair<const char*, const char*> foreign[] = {
      {"mine.choice.json", "{\"schema\":2"},
      {"0123456789abcdef.choice.json", "{\"my\":1}"},
      {"0123456789abcdef.choice.json.log", "a log"},
      {"0123456789abcdef.choice.json.1.2.tmp", "download"}};
  for (const auto& [name, content] : foreign) std::ofstream(directory() + "/" + name) << content;
  std::ofstream(directory() + "/0123456789abcdee.choice.json.1.2.tmp") << "{\"sch";
  store.save("key", {"tiled", 1.0});  // no room: it goes again, and nothing else
  store.save_log("key", "text");
  EXPECT_EQ(file_count(), std::ssize(foreign) + 1);
  ChoiceStore large(directory(), 1 << 20);
  large.save("key", {"tiled", 1.0});
  large.save_log("key", "text");
  EXPECT_EQ(large.clear(), 1);
  EXPECT_EQ(file_count(), std::ssize(foreign));
  for (const auto& [name, content] : foreign) EXPECT_TRUE(fs::exists(directory() + "/" + name));
}

TEST_F(ChoiceStoreTest, GoesNoWayThatAnotherUserMade) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  ChoiceStore store(directory(), 1 << 20);
  store.save("key", {"tiled", 1.0});
  fs::create_directory_symlink(root_, root_ + "/link");
  ChoiceStore linked(root_ + "/link/store", 1 << 20);
  EXPECT_TRUE(linked.load("key").has_value());
  ASSERT_EQ(lchown((root_ + "/link").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(linked.load("key").has_value());
  linked.save("other", {"tiled", 1.0});
  EXPECT_EQ(linked.clear(), 0);
  EXPECT_EQ(file_count(), 1);
}

TEST_F(ChoiceStoreTest, DirectoriesThatOthersCanWriteToAreNotRead) {
  ChoiceStore store(directory(), 1 << 20);
  store.save("key", {"tiled", 1.0});
  ASSERT_EQ(store.problem(), "");
  chmod(directory().c_str(), 0777);
  EXPECT_NE(store.problem().find("can be written by other users"), std::string::npos);
  EXPECT_FALSE(store.load("key").has_value());
  EXPECT_EQ(store.clear(), 0);
  chmod(directory().c_str(), 0700);
  EXPECT_TRUE(store.load("key").has_value());
}

TEST_F(ChoiceStoreTest, WritersAndReadersAtOnceNeverSeeHalfAFile) {
  std::vector<std::thread> threads;
  std::atomic<int64_t> damaged = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      ChoiceStore store(directory(), 1 << 20);
      for (int i = 0; i < 50; ++i) {
        store.save("key", {std::string(static_cast<size_t>(1 + i % 7), 'a'), 1.0 * t});
        EXPECT_TRUE(store.load("key").has_value());
      }
      damaged += store.damaged_count();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(file_count(), 1);
}

}  // namespace
}  // namespace cuop::tune
