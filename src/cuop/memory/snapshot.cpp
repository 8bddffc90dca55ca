#include "cuop/memory/snapshot.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "cuop/core/file_replacement.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/snapshot_page_internal.h"

namespace cuop::memory {

namespace {

const char* name(BlockState state) {
  switch (state) {
    case BlockState::kLive:
      return "live";
    case BlockState::kFree:
      return "idle";
    case BlockState::kUnmapped:
      return "unmapped";
    case BlockState::kInTransit:
      return "in_transit";
  }
  return "";
}

/// Writes `"key":value` pairs and lists with the commas between them.
class Json {
 public:
  explicit Json(std::ostream& out) : out_(out) { out_ << std::setprecision(9); }
  template <class Value>
  void number(const char* key, Value value) {
    begin(key) << value;
  }
  void text(const char* key, const std::string& value) {
    begin(key) << '"' << json_escaped(value) << '"';
  }
  void open(const char* key, char bracket) {
    begin(key) << bracket;
    is_first_ = true;
  }
  void close(char bracket) {
    out_ << bracket;
    is_first_ = false;
  }

 private:
  std::ostream& begin(const char* key) {
    if (!is_first_) out_ << ',';
    is_first_ = false;
    if (*key != '\0') out_ << '"' << key << "\":";
    return out_;
  }
  std::ostream& out_;
  bool is_first_ = true;
};

void write(Json& json, const Statistics& s) {
  json.open("statistics", '{');
  json.number("allocated_bytes", s.allocated_bytes);
  json.number("peak_allocated_bytes", s.peak_allocated_bytes);
  json.number("reserved_bytes", s.reserved_bytes);
  json.number("cached_bytes", s.cached_bytes);
  json.number("pending_bytes", s.pending_bytes);
  json.number("thread_cached_bytes", s.thread_cached_bytes);
  json.number("largest_free_bytes", s.largest_free_bytes);
  json.number("fragmentation", s.fragmentation);
  json.number("capacity_bytes", s.capacity_bytes);
  json.number("allocation_count", s.allocation_count);
  json.number("free_count", s.free_count);
  json.number("out_of_memory_count", s.out_of_memory_count);
  json.number("map_count", s.map_count);
  json.number("unmap_count", s.unmap_count);
  json.number("waits_for_pending", s.waits_for_pending);
  json.number("cache_flushes", s.cache_flushes);
  json.number("idle_releases", s.idle_releases);
  json.number("takes_from_streams", s.takes_from_streams);
  json.number("callback_calls", s.callback_calls);
  json.close('}');
}

void write(Json& json, const BlockReport& block) {
  json.open("", '{');
  json.text("address", cat("0x", std::hex, block.address));
  json.number("bytes", block.bytes);
  json.text("state", name(block.state));
  json.number("stream", block.stream);
  if (block.requested > 0) {
    json.number("requested", block.requested);
    json.number("age_s", block.age_s);
    json.text("site", block.site);
  }
  json.close('}');
}

void write(Json& json, const HistoryEntry& entry) {
  json.open("", '{');
  json.number("time_s", static_cast<double>(entry.time_ns) * 1e-9);
  json.text("kind", name(entry.kind));
  json.number("bytes", entry.bytes);
  json.number("allocated", entry.allocated);
  json.number("reserved", entry.reserved);
  json.close('}');
}

}  // namespace

std::string to_json(const PoolSnapshot& snapshot) {
  std::ostringstream out;
  Json json(out);
  json.open("", '{');
  json.text("device", snapshot.device);
  json.text("upstream", snapshot.upstream);
  json.number("device_total_bytes", snapshot.memory.total);
  json.number("device_free_bytes", snapshot.memory.free);
  write(json, snapshot.statistics);
  json.open("segments", '[');
  for (const auto& segment : snapshot.segments) {
    json.open("", '[');
    for (const BlockReport& block : segment) write(json, block);
    json.close(']');
  }
  json.close(']');
  json.open("history", '[');
  for (const HistoryEntry& entry : snapshot.history) write(json, entry);
  json.close(']');
  json.close('}');
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
