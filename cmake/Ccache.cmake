# Compiles through ccache where it is there. Paths below the source folder are hashed relative to it,
# so that clones, worktrees and the wheel's build share what one of them compiled. Precompiled headers
# want the sloppiness: no file of ours tells the time.
find_program(CUOP_CCACHE ccache)
mark_as_advanced(CUOP_CCACHE)
if(CUOP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
                                  CUOP_CCACHE=${CUOP_CCACHE} ${CMAKE_CURRENT_LIST_DIR}/ccache.sh)
endif()
