// The page of a memory snapshot: what stands before and behind its data.
#pragma once

namespace cuop::memory {

inline constexpr const char* kSnapshotPageHead = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>cuOP memory snapshot</title>
<style>
body { font: 14px sans-serif; margin: 24px; color: #222; }
h2 { margin-top: 28px; }
svg { width: 100%; background: #fafafa; border: 1px solid #ddd; }
td, th { padding: 2px 12px; text-align: right; border-bottom: 1px solid #eee; }
td:last-child, th:last-child { text-align: left; }
.bar { display: flex; height: 22px; margin: 3px 0; border: 1px solid #ccc; }
.bar div { height: 100%; }
.live { background: #3b78b8; } .idle { background: #b9d7b0; }
.in_transit { background: #e0a030; }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 14px; }
</style></head><body>
<h1>cuOP memory snapshot</h1><p id="summary"></p>
<h2>Time line</h2>
<p><span class="key" style="background:#888"></span>reserved
<span class="key live"></span>allocated <span class="key" style="background:#c00"></span>out of
memory <span id="at"></span></p>
<svg id="line" viewBox="0 0 1000 260" preserveAspectRatio="none"></svg>
<h2>Segments</h2>
<p><span class="key live"></span>live <span class="key idle"></span>idle
<span class="key in_transit"></span>in transit</p><div id="segments"></div>
<h2>Largest live blocks</h2><table id="blocks"></table>
<h2>Figures</h2><table id="figures"></table>
<script>
"use strict";
const data = )page";

inline constexpr const char* kSnapshotPageTail = R"page(;
const byId = (id) => document.getElementById(id);
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) { bytes /= 1024; ++unit; }
  return `${+bytes.toPrecision(4)} ${units[unit]}`;
}
function element(tag, attributes, parent, namespace) {
  const made = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.appendChild(made);
  return made;
}
function row(table, cells, tag = "td") {
  const line = element("tr", {}, table);
  for (const cell of cells) element(tag, {}, line).textContent = cell;
}
const stats = data.statistics;
byId("summary").textContent = `${data.device} (${data.upstream}): ` +
  `${size(stats.allocated_bytes)} allocated, ${size(stats.reserved_bytes)} reserved, ` +
  `peak ${size(stats.peak_allocated_bytes)}, fragmentation ${stats.fragmentation.toFixed(3)}`;

const svg = "http://www.w3.org/2000/svg", history_ = data.history;
if (history_.length > 0) {
  const start = history_[0].time_s, end = history_[history_.length - 1].time_s;
  const top = Math.max(1, ...history_.map((e) => Math.max(e.reserved, e.allocated)));
  const x = (e) => 1000 * (e.time_s - start) / Math.max(1e-9, end - start);
  const y = (bytes) => 250 - 240 * bytes / top;
  for (const [key, colour] of [["reserved", "#888"], ["allocated", "#3b78b8"]]) {
    let path = "", last = 250;
    for (const e of history_) {
      path += `${path ? "L" : "M"}${x(e)} ${path ? last : y(e[key])}L${x(e)} ${y(e[key])}`;
      last = y(e[key]);
    }
    element("path", {d: path, fill: "none", stroke: colour, "vector-effect": "non-scaling-stroke"},
            byId("line"), svg);
  }
  for (const e of history_.filter((entry) => entry.kind === "out_of_memory")) {
    element("line", {x1: x(e), x2: x(e), y1: 0, y2: 260, stroke: "#c00",
                     "vector-effect": "non-scaling-stroke"}, byId("line"), svg);
  }
  byId("line").addEventListener("mousemove", (event) => {
    const box = byId("line").getBoundingClientRect();
    const time = start + (end - start) * (event.clientX - box.left) / box.width;
    const e = history_.findLast((entry) => entry.time_s <= time) || history_[0];
    byId("at").textContent = `at ${(e.time_s - start).toFixed(6)} s: ${e.kind} ${size(e.bytes)}, ` +
      `${size(e.allocated)} allocated, ${size(e.reserved)} reserved`;
  });
}

const live = [];
for (const segment of data.segments) {
  const mapped = segment.filter((b) => b.state !== "unmapped");
  const total = mapped.reduce((sum, b) => sum + b.bytes, 0);
  if (total === 0) continue;
  element("div", {}, byId("segments")).textContent = `${segment[0].address}: ${size(total)} mapped`;
  const bar = element("div", {class: "bar"}, byId("segments"));
  for (const b of mapped) {
    element("div", {class: b.state, style: `flex: ${b.bytes / total}`,
                    title: `${b.address} ${b.state} ${size(b.bytes)} ${b.site || ""}`}, bar);
  }
  live.push(...mapped.filter((b) => b.requested));
}
live.sort((a, b) => b.requested - a.requested);
row(byId("blocks"), ["bytes", "address", "stream", "age (s)", "site"], "th");
for (const b of live.slice(0, 100)) {
  row(byId("blocks"), [size(b.requested), b.address, b.stream, b.age_s.toFixed(3), b.site]);
}
for (const [name, value] of Object.entries(stats)) row(byId("figures"), [value, name]);
</script></body></html>
)page";

}  // namespace cuop::memory
