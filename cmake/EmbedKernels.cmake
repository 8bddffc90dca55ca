# Writes the text of the kernels into one source file: name, length, SHA-256 and text of each. Included
# by CMakeLists.txt it declares the step; run as a script (-P) it is the step.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(rows "")
  foreach(file IN LISTS CUOP_KERNEL_FILES)
    file(READ ${CUOP_SOURCE_ROOT}/${file} text)
    # Names and descriptions are for the host; a kernel would carry them in its memory.
    string(REGEX REPLACE "  static constexpr const char\\* (name|doc) =[ \n]*(\"[^\"]*\"[ \n]*)+\;\n" "" text
           "${text}")
    string(REGEX REPLACE "  static constexpr const char\\* parameters[^\n]*\n" "" text "${text}")
    string(REGEX REPLACE "  static constexpr Ulps [^\n]*\n" "" text "${text}")
    string(SHA256 digest "${text}")
    string(APPEND rows "    {\"${file}\", \"${digest}\", R\"kernel(${text})kernel\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CUOP_KERNEL_OUTPUT} @ONLY CONTENT
"// Written by cmake/EmbedKernels.cmake.
#include \"cuop/jit/kernel_text.h\"

namespace cuop::jit {

namespace {
constexpr KernelText kTexts[] = {
@rows@};
}  // namespace

std::span<const KernelText> kernel_texts() { return kTexts; }

}  // namespace cuop::jit
")
  return()
endif()

# Kernel text includes only kernel text, by its path below src/.
file(GLOB_RECURSE CUOP_KERNEL_TEXTS CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
     ${PROJECT_SOURCE_DIR}/src/cuop/jit/kernels/*.h ${PROJECT_SOURCE_DIR}/src/cuop/*.cuh)
list(APPEND CUOP_KERNEL_TEXTS cuop/jit/op_kind.h cuop/core/divide_up.h cuop/core/half.h
     cuop/core/to_integer.h)
list(TRANSFORM CUOP_KERNEL_TEXTS PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE CUOP_KERNEL_PATHS)
set(CUOP_KERNEL_SOURCE ${PROJECT_BINARY_DIR}/generated/kernel_texts.cpp)
add_custom_command(
  OUTPUT ${CUOP_KERNEL_SOURCE}
  COMMAND ${CMAKE_COMMAND} "-DCUOP_KERNEL_FILES=${CUOP_KERNEL_TEXTS}"
          -DCUOP_SOURCE_ROOT=${PROJECT_SOURCE_DIR}/src -DCUOP_KERNEL_OUTPUT=${CUOP_KERNEL_SOURCE} -P
          ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${CUOP_KERNEL_PATHS} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Embedding the text of the kernels"
  VERBATIM)
target_sources(cuop PRIVATE ${CUOP_KERNEL_SOURCE})
