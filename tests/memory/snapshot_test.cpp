#include "cuop/memory/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/sites.h"
#include "tests/memory/fake_device.h"
#include "tests/temporary_folder.h"

namespace cuop::memory {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

PoolSnapshot sample() {
  FakeUpstream upstream(true, 1024 * kMiB);
  FakeOrder order;
  Pool pool(upstream, order);
  set_site_provider([] { return std::string("a \"quoted\" </script> place"); });
  void* kept = pool.allocate(5 * kMiB, stream(7));
  set_site_provider({});
  void* gone = pool.allocate(3 * kMiB, stream(7));
  pool.deallocate(gone, 3 * kMiB, stream(7));
  EXPECT_THROW(pool.allocate(2000 * kMiB, stream(7)), MemoryError);
  PoolSnapshot snapshot = pool.snapshot();
  pool.deallocate(kept, 5 * kMiB, stream(7));
  return snapshot;
}

TEST(Snapshot, HoldsBlocksAndHistory) {
  const PoolSnapshot snapshot = sample();
  ASSERT_EQ(snapshot.segments.size(), 1u);
  EXPECT_EQ(snapshot.segments[0][0].state, BlockState::kLive);
  EXPECT_EQ(snapshot.segments[0][0].requested, 5 * kMiB);
  EXPECT_EQ(snapshot.segments[0][1].state, BlockState::kFree);
  std::vector<HistoryEntry::Kind> kinds;
  for (const HistoryEntry& entry : snapshot.history) kinds.push_back(entry.kind);
  using Kind = HistoryEntry::Kind;
  EXPECT_EQ(kinds, (std::vector{Kind::kMap, Kind::kAllocate, Kind::kMap, Kind::kAllocate,
                                Kind::kFree, Kind::kOutOfMemory}));
  EXPECT_EQ(snapshot.history[3].allocated, 8 * kMiB);
  EXPECT_EQ(snapshot.history[4].allocated, 5 * kMiB);
}

TEST(Snapshot, IsJson) {
  const std::string json = to_json(sample());
  EXPECT_THAT(json, HasSubstr("{\"device\":\"cuda:0\",\"upstream\":\"fake, mapped\","));
  EXPECT_THAT(json, HasSubstr("\"statistics\":{\"allocated_bytes\":5242880,"));
  EXPECT_THAT(json, HasSubstr("\"state\":\"live\",\"stream\":7,\"requested\":5242880,"));
  EXPECT_THAT(json, HasSubstr("\"site\":\"a \\\"quoted\\\" </script> place\""));
  EXPECT_THAT(json, HasSubstr("\"kind\":\"out_of_memory\",\"bytes\":2097152000,"));
  EXPECT_EQ(std::count(json.begin(), json.end(), '{'), std::count(json.begin(), json.end(), '}'));
  EXPECT_EQ(std::count(json.begin(), json.end(), '['), std::count(json.begin(), json.end(), ']'));
}

TEST(Snapshot, JsonSaysWhenAndHowMuchOfEachEvent) {
  PoolSnapshot snapshot;
  snapshot.history.push_back({1'500'000'000, HistoryEntry::Kind::kFree, 7, 8, 9});
  EXPECT_THAT(to_json(snapshot),
              HasSubstr(R"({"time_s":1.5,"kind":"free","bytes":7,"allocated":8,"reserved":9})"));
}

TEST(Snapshot, IsAPageThatLoadsNothing) {
  const std::string page = to_html(sample());
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("<\\/script> place"));
  EXPECT_EQ(page.find("</script>"), page.rfind("</script>")) << "the data ends the script";
  for (const char* loader : {"src=", "href=", "@import", "fetch("}) {
    EXPECT_THAT(page, Not(HasSubstr(loader)));
  }
}

TEST(Snapshot, IsWrittenAsTwoFiles) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  const auto [json, html] = write_snapshot(sample(), (folder / "memory.json").string());
  EXPECT_TRUE(json.ends_with("memory.json"));
  EXPECT_TRUE(html.ends_with("memory.html"));
  std::ifstream in(json);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(text.str().starts_with("{\"device\""));
  EXPECT_THROW(write_snapshot(sample(), "/no/such/folder/memory"), ExecutionError);
}

TEST(Snapshot, IsBothFilesOrNeither) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "memory.html");
  EXPECT_THROW(write_snapshot(sample(), (folder.path() / "memory").string()), ExecutionError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "memory.json"));
}

/// While it lives this process can write files of so many bytes, as on a full disk.
class FileLimit : NonCopyable {
 public:
  explicit FileLimit(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(Snapshot, AFullDiskLeavesWhatWasThere) {
  const PoolSnapshot snapshot = sample();
  const auto json_bytes = static_cast<uint64_t>(to_json(snapshot).size());
  ASSERT_GT(to_html(snapshot).size(), json_bytes);
  for (const bool is_there : {false, true}) {
    // No room for either file, and room for the first one alone.
    for (const uint64_t bytes : {uint64_t{100}, json_bytes}) {
      const test::TemporaryFolder folder;
      const std::string stem = (folder.path() / "memory").string();
      if (is_there) {
        for (const char* ending : {".json", ".html"}) std::ofstream(stem + ending) << "before";
      }
      {
        const FileLimit limit(bytes);
        EXPECT_THROW(write_snapshot(snapshot, stem), ExecutionError);
      }
      const std::filesystem::directory_iterator files(folder.path());
      EXPECT_EQ(std::distance(files, {}), is_there ? 2 : 0) << bytes << " bytes";
      for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
        EXPECT_EQ(std::filesystem::file_size(file), 6u) << file.path();
      }
      write_snapshot(snapshot, stem);
      EXPECT_EQ(std::filesystem::file_size(stem + ".json"), json_bytes);
    }
  }
}

TEST(History, KeepsTheLastEntriesInOrder) {
  History history;
  const auto count = static_cast<int64_t>(History::kCapacity) + 10;
  for (int64_t i = 0; i < count; ++i) {
    HistoryEntry entry;
    entry.bytes = i;
    history.add(entry);
  }
  const auto entries = history.entries();
  ASSERT_EQ(entries.size(), History::kCapacity);
  EXPECT_EQ(entries.front().bytes, 10);
  EXPECT_EQ(entries.back().bytes, count - 1);
}

}  // namespace
}  // namespace cuop::memory
