#include "cuop/core/sha256.h"

#include <gtest/gtest.h>

namespace cuop {
namespace {

// The examples of FIPS 180-4 and NIST's test vectors.
TEST(Sha256, AnswersTheStandardsExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheTextIsCut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 7));
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string whole = text.substr(0, length);
    for (const size_t cut : {size_t{0}, length / 3, length / 2, length}) {
      EXPECT_EQ(Sha256().add(whole.substr(0, cut)).add(whole.substr(cut)).hex(), sha256_hex(whole));
    }
  }
}

}  // namespace
}  // namespace cuop
