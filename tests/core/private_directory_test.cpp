#include "cuop/core/private_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cuop/core/descriptor.h"
#include "tests/temporary_folder.h"

namespace cuop {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Missing = PrivateDirectory::Missing;
constexpr PrivateDirectory::Kind kKinds[] = {{".thing", "header "}, {".lock", ""}};

class PrivateDirectoryTest : public ::testing::Test {
 protected:
  static std::string problem(const fs::path& path, Missing missing = Missing::kLeave) {
    const PrivateDirectory directory = PrivateDirectory::open(path.string(), missing);
    EXPECT_TRUE(!directory.is_open() || directory.problem().empty());
    return directory.problem();
  }
  static void put(const fs::path& file, const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
  }
  void give_away(const fs::path& path) const { ASSERT_EQ(lchown(path.c_str(), 12345, 12345), 0); }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(PrivateDirectoryTest, MakesWhatIsMissingForThisUserAlone) {
  const fs::path deep = root_ / "a" / "b" / "c";
  EXPECT_EQ(problem(deep), "");
  EXPECT_FALSE(fs::exists(root_ / "a")) << "looking makes nothing";
  EXPECT_TRUE(PrivateDirectory::open(deep.string(), Missing::kMake).is_open());
  for (const fs::path& made : {root_ / "a", root_ / "a" / "b", deep}) {
    EXPECT_EQ(fs::status(made).permissions() & fs::perms::all, fs::perms::owner_all) << made;
  }
  EXPECT_TRUE(PrivateDirectory::open((deep / ".." / "c/").string(), Missing::kLeave).is_open());
}

TEST_F(PrivateDirectoryTest, TakesNoWayThatOthersCanChange) {
  fs::create_directories(root_ / "open" / "cache");
  for (const mode_t mode : {0777u, 0775u, 0757u}) {
    ASSERT_EQ(chmod((root_ / "open").c_str(), mode), 0);
    EXPECT_THAT(problem(root_ / "open" / "cache"), HasSubstr("open can be written by other users"));
    EXPECT_THAT(problem(root_ / "open" / "new", Missing::kMake), HasSubstr("can be written"));
    EXPECT_FALSE(fs::exists(root_ / "open" / "new"));
  }
  ASSERT_EQ(chmod((root_ / "open").c_str(), 01777), 0);  // as /tmp
  EXPECT_EQ(problem(root_ / "open" / "cache"), "");
  EXPECT_THAT(problem(root_ / "open"), HasSubstr("can be written by other users"));
}

TEST_F(PrivateDirectoryTest, FollowsLinksOfThisUser) {
  fs::create_directories(root_ / "real" / "cache");
  fs::create_symlink("real", root_ / "relative");
  fs::create_directory_symlink(root_ / "real", root_ / "absolute");
  for (const char* link : {"relative", "absolute"}) {
    const fs::path path = root_ / link / "cache";
    EXPECT_TRUE(PrivateDirectory::open(path.string(), Missing::kLeave).is_open()) << link;
  }
  fs::create_symlink("loop", root_ / "loop");
  EXPECT_THAT(problem(root_ / "loop" / "cache"), HasSubstr("too many links"));
  put(root_ / "file", "");
  EXPECT_THAT(problem(root_ / "file" / "cache"), HasSubstr("is not a directory"));
  EXPECT_THAT(problem(root_ / "file"), HasSubstr("is not a directory"));
}

TEST_F(PrivateDirectoryTest, FollowsNothingOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  fs::create_directories(root_ / "shared");
  ASSERT_EQ(chmod((root_ / "shared").c_str(), 01777), 0);
  fs::create_directories(root_ / "mine" / "cache");
  // What anybody may do in a directory as /tmp: a link that leads to what is this user's.
  fs::create_symlink(root_ / "mine", root_ / "shared" / "link");
  give_away(root_ / "shared" / "link");
  EXPECT_THAT(problem(root_ / "shared" / "link" / "cache"),
              HasSubstr("shared/link is a link that another user made"));
  EXPECT_THAT(problem(root_ / "shared" / "link" / "new", Missing::kMake), HasSubstr("is a link"));
  EXPECT_FALSE(fs::exists(root_ / "mine" / "new"));
  // The same of a link that an own link leads to.
  fs::create_symlink(root_ / "shared" / "link", root_ / "own");
  EXPECT_THAT(problem(root_ / "own" / "cache"), HasSubstr("shared/link is a link"));
  give_away(root_ / "mine");
  EXPECT_THAT(problem(root_ / "mine" / "cache"), HasSubstr("mine belongs to another user"));
}

TEST_F(PrivateDirectoryTest, ListsOnlyWhatItWrote) {
  const auto directory = PrivateDirectory::open((root_ / "cache").string(), Missing::kMake);
  ASSERT_TRUE(directory.write("0af.thing", "header and content"));
  put(root_ / "cache" / "1.thing", "a stranger's");
  put(root_ / "cache" / "2.thing", "head");
  put(root_ / "cache" / "notes.thing", "header of another name");
  put(root_ / "cache" / ".thing", "header of no name");
  put(root_ / "cache" / "3.lock", "");
  put(root_ / "cache" / "4.lock", "a stranger's");
  fs::create_symlink(root_ / "cache" / "0af.thing", root_ / "cache" / "5.thing");
  fs::create_directory(root_ / "cache" / "6.thing");
  std::vector<std::string> names;
  for (const auto& file : directory.files(kKinds)) names.push_back(file.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("0af.thing", "3.lock"));
}

TEST_F(PrivateDirectoryTest, RemovesWhatKilledWritersLeft) {
  const auto directory = PrivateDirectory::open((root_ / "cache").string(), Missing::kMake);
  const std::pair<const char*, const char*> left[] = {
      {"a.thing.12.0.tmp", ""}, {"b.thing.12.1.tmp", "head"}, {"c.thing.12.2.tmp", "header x"}};
  const std::pair<const char*, const char*> foreign[] = {{"d.thing.12.3.tmp", "a stranger's"},
                                                         {"e.thing.12.tmp", ""},
                                                         {"work.thing.12.4.tmp", ""},
                                                         {"f.other.12.5.tmp", ""}};
  for (const auto& [name, content] : left) put(root_ / "cache" / name, content);
  for (const auto& [name, content] : foreign) put(root_ / "cache" / name, content);
  directory.remove_unfinished(kKinds, std::chrono::hours(1));
  for (const auto& [name, content] : left) EXPECT_TRUE(directory.contains(name)) << name;
  directory.remove_unfinished(kKinds, std::chrono::seconds(0));
  for (const auto& [name, content] : left) EXPECT_FALSE(directory.contains(name)) << name;
  for (const auto& [name, content] : foreign) EXPECT_TRUE(directory.contains(name)) << name;
}

TEST_F(PrivateDirectoryTest, LeavesWhatIsBeingWritten) {
  const auto directory = PrivateDirectory::open((root_ / "cache").string(), Missing::kMake);
  const char* const name = "a.thing.12.0.tmp";
  put(root_ / "cache" / name, "header");
  {
    const Descriptor writer(::open((root_ / "cache" / name).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(flock(writer.get(), LOCK_EX), 0);
    directory.remove_unfinished(kKinds, std::chrono::seconds(0));
    EXPECT_TRUE(directory.contains(name));
  }
  directory.remove_unfinished(kKinds, std::chrono::seconds(0));
  EXPECT_FALSE(directory.contains(name));
}

TEST_F(PrivateDirectoryTest, StaysWithTheDirectoryThatWasChecked) {
  const auto directory = PrivateDirectory::open((root_ / "cache").string(), Missing::kMake);
  fs::rename(root_ / "cache", root_ / "moved");
  fs::create_directory(root_ / "cache");
  ASSERT_TRUE(directory.write("0.thing", "header"));
  EXPECT_TRUE(fs::exists(root_ / "moved" / "0.thing"));
  EXPECT_TRUE(fs::is_empty(root_ / "cache"));
}

}  // namespace
}  // namespace cuop
