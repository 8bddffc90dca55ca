# The module through which the CPU backend calls oneDNN, built where oneDNN's headers are. The
# library opens it at run time and works without it.
find_path(CUOP_DNNL_INCLUDE NAMES oneapi/dnnl/dnnl.hpp dnnl.hpp)
find_library(CUOP_DNNL_LIBRARY NAMES dnnl)
mark_as_advanced(CUOP_DNNL_INCLUDE CUOP_DNNL_LIBRARY)
if(CUOP_DNNL_INCLUDE AND CUOP_DNNL_LIBRARY)
  find_package(OpenMP COMPONENTS CXX QUIET)
  add_library(cuop_dnn MODULE src/cuop/backend/cpu/dnn_module.cpp)
  target_include_directories(cuop_dnn PRIVATE src)
  target_include_directories(cuop_dnn SYSTEM PRIVATE ${CUOP_DNNL_INCLUDE})
  # OpenMP only for the number of threads that oneDNN uses.
  target_link_libraries(cuop_dnn PRIVATE cuop_flags ${CUOP_DNNL_LIBRARY}
                                         $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_CXX>)
  set_target_properties(cuop_dnn PROPERTIES CXX_VISIBILITY_PRESET hidden)
  add_dependencies(cuop cuop_dnn)
else()
  message(STATUS "cuOP: no oneDNN module: its headers were not found (libdnnl-dev)")
endif()
