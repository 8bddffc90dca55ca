# Installs the library, its headers and what find_package(cuop) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Every header of the library. Installed are those that public_headers.txt names, which users include,
# and what these include, which public_parts.txt names; tools/check_layers.py compares the lists with
# what the headers include.
file(GLOB_RECURSE CUOP_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuop/*.h)
set(CUOP_HEADER_LISTS ${PROJECT_SOURCE_DIR}/src/public_headers.txt
                      ${PROJECT_SOURCE_DIR}/src/public_parts.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CUOP_HEADER_LISTS})
set(CUOP_INSTALLED_HEADERS)
foreach(list IN LISTS CUOP_HEADER_LISTS)
  file(STRINGS ${list} names)
  list(TRANSFORM names PREPEND ${PROJECT_SOURCE_DIR}/src/)
  list(APPEND CUOP_INSTALLED_HEADERS ${names})
endforeach()
# cuop/cuop.h includes all public ones; written here, it cannot forget one.
file(STRINGS ${PROJECT_SOURCE_DIR}/src/public_headers.txt CUOP_PUBLIC_NAMES)
set(CUOP_UMBRELLA "// Everything that cuOP offers. Written by CMake.\n#pragma once\n\n")
foreach(name IN LISTS CUOP_PUBLIC_NAMES)
  string(APPEND CUOP_UMBRELLA "#include \"${name}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/cuop/cuop.h CONTENT "${CUOP_UMBRELLA}" @ONLY)
target_include_directories(cuop PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
target_sources(cuop PUBLIC FILE_SET HEADERS
               BASE_DIRS ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated
               FILES ${CUOP_INSTALLED_HEADERS} ${PROJECT_BINARY_DIR}/generated/cuop/cuop.h)

add_library(cuop::cuop ALIAS cuop)
if(NOT SKBUILD)
  set_target_properties(cuop PROPERTIES VERSION ${PROJECT_VERSION}
                                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

set(CUOP_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cuop)
install(TARGETS cuop EXPORT cuop-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
foreach(module cuop_mpi cuop_dnn)
  if(TARGET ${module})
    # Opened at run time by libcuop.so, which looks for it at its own side.
    set_target_properties(${module} PROPERTIES INSTALL_RPATH $ORIGIN)
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  endif()
endforeach()
install(EXPORT cuop-targets NAMESPACE cuop:: DESTINATION ${CUOP_PACKAGE_DIR} COMPONENT library
        FILE cuop-config.cmake)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cuop-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cuop-config-version.cmake DESTINATION ${CUOP_PACKAGE_DIR}
        COMPONENT library)
