#include "cuop/memory/snapshot.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "cuop/core/file_replacement.h"
#include "cuop/core/json.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/snapshot_page_internal.h"

namespace cuop::memory {

namespace {

const char* name(BlockState state) {
  constexpr const char* kNames[] = {"live", "idle", "unmapped", "in_transit"};
  return kNames[static_cast<size_t>(state)];
}

const char* name(HistoryEntry::Kind kind) {
  constexpr const char* kNames[] = {"allocate", "free", "map", "unmap", "out_of_memory"};
  return kNames[static_cast<size_t>(kind)];
}

void write(JsonWriter& json, const Statistics& s) {
  json.key("statistics")
      .object("allocated_bytes", s.allocated_bytes, "peak_allocated_bytes", s.peak_allocated_bytes,
              "reserved_bytes", s.reserved_bytes, "cached_bytes", s.cached_bytes, "pending_bytes",
              s.pending_bytes, "thread_cached_bytes", s.thread_cached_bytes, "largest_free_bytes",
              s.largest_free_bytes, "fragmentation", s.fragmentation, "capacity_bytes",
              s.capacity_bytes, "allocation_count", s.allocation_count, "free_count", s.free_count,
              "out_of_memory_count", s.out_of_memory_count, "map_count", s.map_count, "unmap_count",
              s.unmap_count, "waits_for_pending", s.waits_for_pending, "cache_flushes",
              s.cache_flushes, "idle_releases", s.idle_releases, "takes_from_streams",
              s.takes_from_streams, "callback_calls", s.callback_calls);
}

void write(JsonWriter& json, const BlockReport& block) {
  json.open('{').members("address", cat("0x", std::setbase(16), block.address), "bytes",
                         block.bytes, "state", name(block.state), "stream", block.stream);
  if (block.requested > 0) {
    json.members("requested", block.requested, "age_s", block.age_s, "site", block.site);
  }
  json.close();
}

void write(JsonWriter& json, const HistoryEntry& entry) {
  json.object("time_s", static_cast<double>(entry.time_ns) * 1e-9, "kind", name(entry.kind),
              "bytes", entry.bytes, "allocated", entry.allocated, "reserved", entry.reserved);
}

}  // namespace

std::string to_json(const PoolSnapshot& snapshot) {
  std::ostringstream out;
  out << std::setprecision(9);
  JsonWriter json(out);
  json.open('{').members("device", snapshot.device, "upstream", snapshot.upstream,
                         "device_total_bytes", snapshot.memory.total, "device_free_bytes",
                         snapshot.memory.free);
  write(json, snapshot.statistics);
  json.key("segments").open('[');
  for (const auto& segment : snapshot.segments) {
    json.open('[');
    for (const BlockReport& block : segment) write(json, block);
    json.close();
  }
  json.close();
  json.key("history").open('[');
  for (const HistoryEntry& entry : snapshot.history) write(json, entry);
  json.close();
  json.close();
  return out.str();
}

std::string to_html(const PoolSnapshot& snapshot) {
  // Inside a script no "</" may stand, whatever the sites are called.
  std::string data = to_json(snapshot);
  for (size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3) {
    data.replace(at, 2, "<\\/");
  }
  return cat(kSnapshotPageHead, data, kSnapshotPageTail);
}

std::pair<std::string, std::string> write_snapshot(const PoolSnapshot& snapshot,
                                                   const std::string& path) {
  std::string stem = path;
  for (const char* ending : {".json", ".html"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - 5);
  }
  std::pair<std::string, std::string> names{stem + ".json", stem + ".html"};
  FileReplacement json("memory snapshot", names.first), page("memory snapshot", names.second);
  json.write(to_json(snapshot));
  page.write(to_html(snapshot));
  json.commit();
  page.commit();
  return names;
}

std::pair<std::string, std::string> write_snapshot(Device device, const std::string& path) {
  return write_snapshot(device_pool(device).snapshot(), path);
}

}  // namespace cuop::memory
