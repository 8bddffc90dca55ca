// Reports between hosts: what is written is read, and nothing else is.
#include "cuop/dist/comm/heartbeat_report.h"

#include <gtest/gtest.h>

#include <random>

#include "cuop/core/sha256.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

const std::string kReportKey = "a key of this job's ranks alone";
constexpr int kSize = 40;

RankReport report_of(int rank, int calls) {
  RankReport report{rank, rank % 3 == 1, {100 + rank, 7, 12, rank % 2 == 1, {}}};
  for (int i = 0; i < calls; ++i) {
    report.page.calls.push_back({cat("reduce_scatter_", i).substr(0, 16), 1ull << 60, i, 12 + i,
                                 i % 2 == 0, 99, i % 2 == 0 ? -1 : 3});
  }
  return report;
}

void expect_equal(const RankReport& read, const RankReport& written) {
  EXPECT_EQ(read.rank, written.rank);
  EXPECT_EQ(read.is_dead, written.is_dead);
  EXPECT_EQ(read.page.beats, written.page.beats);
  EXPECT_EQ(read.page.shown, written.page.shown);
  EXPECT_EQ(read.page.last_number, written.page.last_number);
  EXPECT_EQ(read.page.has_left, written.page.has_left);
  ASSERT_EQ(read.page.calls.size(), written.page.calls.size());
  for (size_t i = 0; i < read.page.calls.size(); ++i) {
    const CallNote &a = read.page.calls[i], &b = written.page.calls[i];
    EXPECT_EQ(a.operation, b.operation);
    EXPECT_EQ(a.context, b.context);
    EXPECT_EQ(a.epoch, b.epoch);
    EXPECT_EQ(a.number, b.number);
    EXPECT_EQ(a.is_collective, b.is_collective);
    EXPECT_EQ(a.since, b.since);
    EXPECT_EQ(a.awaited, b.awaited);
  }
}

TEST(HeartbeatReport, SaysWhatThePagesSayInDatagramsOfBoundedLength) {
  std::vector<RankReport> ranks;
  for (int rank = 0; rank < kSize; ++rank) ranks.push_back(report_of(rank, rank % 9));
  uint64_t number = 5;
  size_t read = 0;
  uint64_t expected = 5;
  for (const std::string& datagram : write_reports(kReportKey, 2, number, ranks)) {
    EXPECT_LE(datagram.size(), kReportBytes);
    const auto report = read_report(kReportKey, datagram, kSize);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->sender, 2);
    EXPECT_EQ(report->number, expected++);
    for (const RankReport& each : report->ranks) expect_equal(each, ranks.at(read++));
  }
  EXPECT_EQ(read, ranks.size());
  EXPECT_EQ(number, expected);
  EXPECT_TRUE(write_reports(kReportKey, 2, number, {}).empty());
}

TEST(HeartbeatReport, EveryBitIsProven) {
  uint64_t number = 1;
  const std::string datagram = write_reports(kReportKey, 1, number, {report_of(3, 2)}).at(0);
  ASSERT_TRUE(read_report(kReportKey, datagram, kSize));
  for (size_t bit = 0; bit < datagram.size() * 8; ++bit) {
    std::string wrong = datagram;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(read_report(kReportKey, wrong, kSize)) << bit;
  }
  EXPECT_FALSE(read_report(kReportKey + "x", datagram, kSize));
  for (size_t length = 0; length < datagram.size(); ++length) {
    ASSERT_FALSE(read_report(kReportKey, datagram.substr(0, length), kSize)) << length;
  }
  EXPECT_FALSE(read_report(kReportKey, datagram + "x", kSize));
}

// Also what a rank of the job itself sends is looked at before it is taken.
TEST(HeartbeatReport, WhatMakesNoSenseIsDropped) {
  uint64_t number = 1;
  EXPECT_FALSE(read_report(
      kReportKey, write_reports(kReportKey, kSize, number, {report_of(3, 2)}).at(0), kSize));
  EXPECT_FALSE(read_report(
      kReportKey, write_reports(kReportKey, 1, number, {report_of(kSize, 1)}).at(0), kSize));
  EXPECT_FALSE(read_report(kReportKey,
                           write_reports(kReportKey, -1, number, {report_of(3, 1)}).at(0), kSize));
  RankReport wrong = report_of(3, 2);
  wrong.page.calls[1].awaited = kSize;
  EXPECT_FALSE(read_report(kReportKey, write_reports(kReportKey, 1, number, {wrong}).at(0), kSize));
  wrong.page.calls[1].awaited = -2;
  EXPECT_FALSE(read_report(kReportKey, write_reports(kReportKey, 1, number, {wrong}).at(0), kSize));
  wrong = report_of(3, 1);
  wrong.page.calls[0].operation = "";
  EXPECT_FALSE(read_report(kReportKey, write_reports(kReportKey, 1, number, {wrong}).at(0), kSize));
}

TEST(HeartbeatReport, AnyBytesBehindAProofAreReadSafely) {
  std::mt19937 random(7);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    uint64_t number = 1;
    std::string bytes =
        write_reports(kReportKey, 1, number, {report_of(3, 3), report_of(4, 0)}).at(0);
    bytes.resize(bytes.size() - kProofBytes);
    for (int changes = static_cast<int>(random() % 4); changes >= 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    if (read_report(kReportKey, bytes + hmac_sha256(kReportKey, bytes), kSize)) ++read;
  }
  EXPECT_GT(read, 1000);
  EXPECT_LT(read, 19000);
}

}  // namespace
}  // namespace cuop::dist
