#include "tests/simulator/kernel_source.h"

#include <map>
#include <regex>

#include "cuop/core/text.h"

namespace cuop::simulator {

namespace {

const std::map<std::string, std::string>& conversions() {
  static const std::map<std::string, std::string> all = {
      {"cvt.f32.f16", "half_to_float"},
      {"cvt.rn.f16.f32", "float_to_half"},
      {"cvt.rn.bf16.f32", "float_to_bfloat16"},
  };
  return all;
}

}  // namespace

std::string without_ptx(const std::string& text) {
  if (text.find("asm(") == std::string::npos) return text;
  static const std::regex pattern(
      R"re(asm\("([\w.]+) %0, %1;" : "=\w"\(([\w.]+)\) : "\w"\(([\w.]+)\)\);)re");
  std::string result;
  auto rest = text.cbegin();
  for (std::smatch match; std::regex_search(rest, text.cend(), match, pattern);) {
    result += match.prefix();
    const auto known = conversions().find(match[1]);
    result += known == conversions().end()
                  ? match[0].str()
                  : cat(match[2], " = ::cuop::simulator::", known->second, "(", match[3], ");");
    rest = match[0].second;
  }
  return result.append(rest, text.cend());
}

std::string framed(const std::string& source, const std::string& name) {
  static const std::regex kernel(
      R"(extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\(([^,)]*)[^)]*\)\s*)?(\w+)\s*\()");
  std::string result =
      cat("#include \"tests/simulator/kernel_frame.h\"\n#line 1 \"", name, "\"\n",
          without_ptx(source), "\nnamespace cuop::jit {}\nusing namespace cuop::jit;\n");
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at) {
    const std::string bound = (*at)[1].matched ? (*at)[1].str() : "0", entry = (*at)[2];
    result += cat("extern \"C\" [[gnu::visibility(\"default\"), gnu::used]] constinit const ",
                  "cuop::simulator::KernelInfo simulated_kernel_", entry,
                  " = cuop::simulator::Entry<&", entry, ">::info(", bound, ");\n");
  }
  return result;
}

}  // namespace cuop::simulator
