// Python's operators and the elementwise operations that they are.
#pragma once

namespace cuop::python {

struct OperatorName {
  const char* op;
  const char* method;
};
inline constexpr OperatorName kUnaryOperators[] = {
    {"negative", "neg"}, {"positive", "pos"}, {"abs", "abs"}, {"bitwise_invert", "invert"}};
inline constexpr OperatorName kBinaryOperators[] = {{"add", "add"},
                                                    {"subtract", "sub"},
                                                    {"multiply", "mul"},
                                                    {"divide", "truediv"},
                                                    {"floor_divide", "floordiv"},
                                                    {"remainder", "mod"},
                                                    {"pow", "pow"},
                                                    {"bitwise_and", "and"},
                                                    {"bitwise_or", "or"},
                                                    {"bitwise_xor", "xor"},
                                                    {"bitwise_left_shift", "lshift"},
                                                    {"bitwise_right_shift", "rshift"}};
inline constexpr OperatorName kComparisons[] = {{"equal", "eq"},   {"not_equal", "ne"},
                                                {"less", "lt"},    {"less_equal", "le"},
                                                {"greater", "gt"}, {"greater_equal", "ge"}};

}  // namespace cuop::python
