#include "cuop/jit/kernel_signature.h"

#include <algorithm>
#include <cctype>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// The source with every comment replaced by a space.
std::string without_comments(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    const std::string_view rest = source.substr(i);
    const bool is_line = rest.starts_with("//"), is_block = rest.starts_with("/*");
    if (!is_line && !is_block) {
      text += source[i];
      continue;
    }
    const size_t end = rest.find(is_line ? "\n" : "*/", 2);
    if (end == std::string_view::npos) break;
    i += is_line ? end - 1 : end + 1;
    text += ' ';
  }
  return text;
}

/// Words, and every other character that is no space by itself.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_word(text[i])) {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    if (!is_space(text[i])) tokens.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

struct TypeName {
  std::string_view name;
  DType dtype;
};
/// Of a 64-bit Linux, on which `long` has 64 bits.
constexpr TypeName kTypes[] = {
    {"bool", DType::kBool},
    {"char", DType::kInt8},
    {"signed char", DType::kInt8},
    {"int8_t", DType::kInt8},
    {"short", DType::kInt16},
    {"int16_t", DType::kInt16},
    {"int", DType::kInt32},
    {"int32_t", DType::kInt32},
    {"long", DType::kInt64},
    {"long long", DType::kInt64},
    {"int64_t", DType::kInt64},
    {"ptrdiff_t", DType::kInt64},
    {"unsigned char", DType::kUInt8},
    {"uint8_t", DType::kUInt8},
    {"unsigned short", DType::kUInt16},
    {"uint16_t", DType::kUInt16},
    {"unsigned", DType::kUInt32},
    {"unsigned int", DType::kUInt32},
    {"uint32_t", DType::kUInt32},
    {"unsigned long", DType::kUInt64},
    {"unsigned long long", DType::kUInt64},
    {"uint64_t", DType::kUInt64},
    {"size_t", DType::kUInt64},
    {"Half", DType::kFloat16},
    {"BFloat16", DType::kBFloat16},
    {"float", DType::kFloat32},
    {"double", DType::kFloat64},
    {"Complex<float>", DType::kComplex64},
    {"float2", DType::kComplex64},
    {"Complex<double>", DType::kComplex128},
    {"double2", DType::kComplex128},
};

std::optional<DType> dtype_named(const std::string& type) {
  for (const TypeName& known : kTypes) {
    if (known.name == type) return known.dtype;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::string_view source, const std::string& name,
         const std::map<std::string, std::string>& macros)
      : text_(without_comments(source)), name_(name), macros_(macros) {}

  std::vector<KernelParameter> read() const {
    std::vector<KernelParameter> parameters;
    const std::string_view list = parameter_list();
    const auto is_blank = [](std::string_view text) {
      return std::all_of(text.begin(), text.end(), is_space);
    };
    if (is_blank(list) || tokens_of(list) == std::vector<std::string>{"void"}) return parameters;
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= list.size(); ++i) {
      const char c = i < list.size() ? list[i] : ',';
      if (c == '(' || c == '<' || c == '[') ++depth;
      if (c == ')' || c == '>' || c == ']') --depth;
      if (c != ',' || (depth > 0 && i < list.size())) continue;
      parameters.push_back(parameter(list.substr(begin, i - begin), parameters.size() + 1));
      begin = i + 1;
    }
    return parameters;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw CompilationError(cat("kernel ", name_, ": ", parts...));
  }

  /// What stands between the parentheses behind the kernel's name.
  std::string_view parameter_list() const {
    const std::string_view text = text_;
    for (size_t at = text.find(name_); at != std::string_view::npos;
         at = text.find(name_, at + 1)) {
      size_t open = at + name_.size();
      if ((at > 0 && is_word(text[at - 1])) || (open < text.size() && is_word(text[open])))
        continue;
      while (open < text.size() && is_space(text[open])) ++open;
      if (open == text.size() || text[open] != '(') continue;
      const size_t start = text.find_last_of(";{}", at);
      const std::string_view before =
          text.substr(start == std::string_view::npos ? 0 : start, at - (start + 1) + 1);
      if (before.find("__global__") == std::string_view::npos) continue;
      check_linkage();
      return within_parentheses(open);
    }
    refuse("the source declares no function extern \"C\" __global__ void ", name_, "(...)");
  }

  void check_linkage() const {
    const auto tokens = tokens_of(text_);
    for (size_t i = 0; i + 3 < tokens.size(); ++i) {
      if (tokens[i] == "extern" && tokens[i + 1] == "\"" && tokens[i + 2] == "C") return;
    }
    refuse("declare it extern \"C\", so that it is found by its name");
  }

  std::string_view within_parentheses(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < text_.size(); ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) {
        return std::string_view(text_).substr(open + 1, i - open - 1);
      }
    }
    refuse("the parenthesis of its parameters is not closed");
  }

  KernelParameter parameter(std::string_view text, size_t number) const {
    std::vector<std::string> tokens;
    for (const std::string& token : tokens_of(text)) {
      const auto macro = macros_.find(token);
      if (macro == macros_.end()) {
        tokens.push_back(token);
      } else {
        for (const std::string& word : tokens_of(macro->second)) tokens.push_back(word);
      }
    }
    KernelParameter result;
    if (tokens.size() > 2 && tokens.back() == "]") {  // float x[] is float* x
      while (tokens.back() != "[") tokens.pop_back();
      tokens.pop_back();
      result.is_pointer = true;
    }
    if (tokens.size() < 2 || !is_word(tokens.back()[0])) {
      refuse("parameter ", number, " '", text, "' has no name");
    }
    result.name = tokens.back();
    tokens.pop_back();
    bool is_const = false, is_behind_star = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string& token = tokens[i];
      if (token == "*") {
        if (result.is_pointer) refuse("parameter ", result.name, " is a pointer to pointers");
        result.is_pointer = is_behind_star = true;
      } else if (token == "&") {
        refuse("parameter ", result.name, " is a reference; a kernel takes values and pointers");
      } else if (token == "const") {
        is_const = is_const || !is_behind_star;
      } else if (token != "volatile" && !token.starts_with("__")) {
        add_to_type(result.type, token);
      }
    }
    result.is_written = result.is_pointer && !is_const;
    if (result.type == "void" && result.is_pointer) return result;
    result.dtype = dtype_named(result.type);
    if (!result.dtype) {
      std::vector<std::string_view> names;
      for (const TypeName& known : kTypes) names.push_back(known.name);
      refuse("parameter ", result.name, " has the type '", result.type, "'; understood are ",
             join(names), ", pointers to them, and void*");
    }
    return result;
  }

  /// "unsigned", "int" -> "unsigned int"; of "cuop::jit::Complex<float>" the namespaces go; an int
  /// that only repeats what stands before it goes as well.
  static void add_to_type(std::string& type, const std::string& token) {
    if (token == ":") {
      type.clear();
      return;
    }
    const bool is_redundant = token == "int" && (type.ends_with("long") || type.ends_with("short"));
    if (is_redundant) return;
    const bool is_joined = type.empty() || !is_word(token[0]) || !is_word(type.back());
    type += (is_joined ? "" : " ") + token;
  }

  const std::string text_;
  const std::string& name_;
  const std::map<std::string, std::string>& macros_;
};

}  // namespace

std::vector<KernelParameter> parse_signature(std::string_view source, const std::string& name,
                                             const std::map<std::string, std::string>& macros) {
  return Reader(source, name, macros).read();
}

}  // namespace cuop::jit
