#include "cuop/core/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iomanip>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace cuop {
namespace {

using namespace std::string_literals;

template <class Value>
std::string written(const Value& value) {
  std::ostringstream out;
  JsonWriter(out).value(value);
  return out.str();
}

TEST(JsonEscape, EveryTextBecomesAValidString) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"plain ~\x7f", "plain ~\x7f"},
      {R"(a "quoted" \ path)", R"(a \"quoted\" \\ path)"},
      {"\n\t\r\b"s + "\0\x1f"s, R"(\u000a\u0009\u000d\u0008\u0000\u001f)"},
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xef\xbf\xbd", "\xef\xbf\xbd"},
      {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},                  // the last character
      {"s\xfd.npy", "s\xef\xbf\xbd.npy"},                        // a byte that begins none
      {"\x80", "\xef\xbf\xbd"},                                  // that continues none
      {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                  // cut short
      {"\xe2\"x", "\xef\xbf\xbd\\\"x"},                          // must not swallow the quote
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                  // '/' in too many bytes
      {"\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // and in three
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // half of a UTF-16 pair
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // beyond
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(json_escape(text), expected) << expected;
}

TEST(JsonWriter, PutsCommasBetweenValues) {
  std::ostringstream out;
  JsonWriter json(out);
  json.open('{').members("a", 1).key("b").open('[').close().key("c").open('{').close();
  json.key("d").open('[').value("x").open('[').value(true).value(false).close().value(-2).close();
  json.members("e\"", "f").close();
  EXPECT_EQ(out.str(), R"({"a":1,"b":[],"c":{},"d":["x",[true,false],-2],"e\"":"f"})");
}

TEST(JsonWriter, PutsLinesWhereTheyAreAskedFor) {
  std::ostringstream out;
  JsonWriter json(out);
  json.open('[').new_line().value(1).new_line().value(2).new_line().close();
  EXPECT_EQ(out.str(), "[\n1,\n2\n]");
}

TEST(JsonWriter, WritesNumbersThatAreJson) {
  EXPECT_EQ(written(std::vector<int64_t>{3, -4}), "[3,-4]");
  EXPECT_EQ(written(std::vector<double>{0.5, std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()}),
            "[0.5,null,null,null]");
  EXPECT_EQ(written(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  std::ostringstream out;
  out << std::fixed << std::setprecision(2);
  JsonWriter(out).value(1e7 / 3);
  EXPECT_EQ(out.str(), "3333333.33");
}

/// Writes numbers as 1.000,5.
struct Grouping : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(JsonWriter, TheProgramsLanguageChangesNothing) {
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string text = written(std::vector<double>{1234567.5});
  std::locale::global(before);
  EXPECT_EQ(text, "[1.23457e+06]");
}

TEST(JsonReader, ReadsBackWhatWasWritten) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 256 : random() % 128);
    std::ostringstream out;
    JsonWriter(out).open('{').members("text", text, "n", trial, "x", 0.25).close();
    const std::string json = out.str();
    JsonReader reader(json);
    std::string back;
    int n = 0;
    double x = 0.0;
    ASSERT_TRUE(reader.member("text", back) && reader.member("n", n) && reader.member("x", x));
    EXPECT_EQ(json_escape(back), json_escape(text));
    EXPECT_EQ(n, trial);
    EXPECT_EQ(x, 0.25);
  }
}

TEST(JsonReader, TakesNothingElse) {
  for (const std::string& text : {""s,
                                  "{"s,
                                  "x"s,
                                  R"("text":"a")"s,
                                  R"({"other":"a"})"s,
                                  R"({"text":)"s,
                                  R"({"text":"a)"s,
                                  R"({"text": "a"})"s,
                                  R"( {"text":"a"})"s,
                                  R"({"text":'a'})"s,
                                  R"({"text":1})"s,
                                  R"({"text":null})"s,
                                  R"({"text":["a"]})"s,
                                  R"({"text":{}})"s,
                                  R"({"text":"\x"})"s,
                                  R"({"text":"\)"s,
                                  R"({"text":"\")"s,
                                  R"({"text":"\u00)"s,
                                  R"({"text":"\u001)"s,
                                  R"({"text":"\u001g"})"s,
                                  R"({"text":"\u0041"})"s,
                                  R"({"text":"\ud83d\ude00"})"s,
                                  "{\"text\":\"\n\"}"s,
                                  "{\"text\":\"\0\"}"s,
                                  "{\"text\":\"\xff\"}"s,
                                  "{\"text\":\"\xe2\x82\"}"s}) {
    std::string value;
    EXPECT_FALSE(JsonReader(text).member("text", value)) << text;
  }
  for (const char* text : {"{\"n\":}", "{\"n\":\"1\"}", "{\"n\":nan}", "{\"n\":inf}",
                           "{\"n\":-inf}", "{\"n\":1e999}", "{\"n\": 1}", "{\"n\":+1}"}) {
    double value = 0.0;
    EXPECT_FALSE(JsonReader(text).member("n", value)) << text;
  }
  int small = 0;
  EXPECT_FALSE(JsonReader("{\"n\":99999999999}").member("n", small));
}

TEST(JsonReader, AnyTextEndsWithoutHarm) {
  const std::string good = R"({"a":"x\"\\\u000a","n":12})";
  std::mt19937 random(9);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (int i = 0; i < 2 && !text.empty(); ++i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const std::string copy(text.data(), text.size());  // its end is watched by the sanitizer
    JsonReader reader(copy);
    std::string a;
    int n = 0;
    EXPECT_LE(reader.member("a", a) && reader.member("n", n) ? a.size() : 0, copy.size());
  }
}

}  // namespace
}  // namespace cuop
