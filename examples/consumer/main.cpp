// A program outside cuOP's tree: makes a tensor, transposes it without a copy and prints it; then
// shows how an error is caught.
#include <cstdint>
#include <exception>
#include <iostream>

#include "cuop/cuop.h"

int main() {
  const cuop::Tensor x = cuop::from_values<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const cuop::Tensor columns = cuop::contiguous(cuop::transpose(x));
  std::cout << "shape " << columns.shape() << ", " << columns.dtype() << ":";
  for (int64_t i = 0; i < columns.size(); ++i) std::cout << ' ' << columns.data<float>()[i];
  std::cout << '\n';

  try {
    cuop::reshape(x, {4, 2});
  } catch (const cuop::ShapeError& error) {
    std::cout << "as expected: " << error.what() << '\n';
    return 0;
  }
  std::cout << "reshape to a wrong size went through\n";
  return 1;
}
