#include <gtest/gtest.h>

#include "cuop/core/sha256.h"

namespace cuop {
namespace {

// The test cases 1 to 7 of RFC 4231.
TEST(Hmac, AnswersTheStandardsExamples) {
  struct Case {
    std::string key, data, proof;
  };
  std::string counting;
  for (char byte = 1; byte <= 25; ++byte) counting.push_back(byte);
  const std::string long_key(131, '\xaa');
  const Case cases[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, std::string(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {long_key, "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {long_key,
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const Case& each : cases) EXPECT_EQ(to_hex(hmac_sha256(each.key, each.data)), each.proof);
  const std::string cut = hmac_sha256(std::string(20, '\x0c'), "Test With Truncation");
  EXPECT_EQ(to_hex(cut.substr(0, 16)), "a3b6167473100ee06e0c796c2955552b");
}

TEST(Hmac, ComparesEveryByte) {
  const std::string proof = hmac_sha256("key", "message");
  EXPECT_TRUE(equal_in_constant_time(proof, proof));
  for (size_t i = 0; i < proof.size(); ++i) {
    std::string other = proof;
    other[i] = static_cast<char>(other[i] ^ 0x80);
    EXPECT_FALSE(equal_in_constant_time(proof, other)) << i;
  }
  EXPECT_FALSE(equal_in_constant_time(proof, proof.substr(1)));
  EXPECT_FALSE(equal_in_constant_time("", proof));
}

TEST(Hmac, RandomBytesDiffer) {
  EXPECT_EQ(random_bytes(1000).size(), 1000u);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

}  // namespace
}  // namespace cuop
