// A program outside cuOP's tree: multiplies two matrices, sums the product exactly and shows how an
// error is caught.
#include <exception>
#include <iostream>

#include "cuop/cuop.h"

int main() {
  const cuop::Tensor a = cuop::from_values<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  const cuop::Tensor product = cuop::matmul(a, cuop::transpose(a));
  const cuop::Tensor total = cuop::sum(product, {}, false, cuop::SumMode::kExact);
  std::cout << "shape " << product.shape() << ", " << product.dtype() << ", sum "
            << *total.data<double>() << '\n';
  if (*total.data<double>() != 14 + 2 * 32 + 77) return 1;

  try {
    cuop::matmul(a, a);
  } catch (const cuop::ShapeError& error) {
    std::cout << "as expected: " << error.what() << '\n';
    return 0;
  }
  std::cout << "a product of shapes that do not fit went through\n";
  return 1;
}
