# The tests of cuop_tests under a sanitizer: a process takes up to a second to start there, so a few
# run them all. Tests named "libraries" use libraries with threads of their own (OpenMP, NVRTC), beside
# which g++ 12's leak checker crashes.
set(CUOP_SHARDS 16)

# Left out: kernels and their register budgets, which compile for minutes or hold for no such build.
set(CUOP_LEFT_OUT *Budget.* *Compiled* ScanText.Groups*)
set(CUOP_OF_LIBRARIES CompileServiceTest.* Conv.Variants* Conv.Ranks* Conv.Kept* Conv.Prepared*
    Conv.SizesThat* Conv.Rectifies* */InterruptTest.EndsConvolutions* Operators/0.NetworkLayersChain)
list(JOIN CUOP_OF_LIBRARIES ":" of_libraries)
list(JOIN CUOP_LEFT_OUT ":" left_out)

set(common "CUOP_LIBRARY_PATH=${CUOP_TEST_LIBRARIES}")
math(EXPR last "${CUOP_SHARDS} - 1")
foreach(shard RANGE ${last})
  add_test(NAME shard.${shard} COMMAND ${PROJECT_SOURCE_DIR}/tools/leak_checked.sh
    $<TARGET_FILE:cuop_tests> "--gtest_filter=-${left_out}:${of_libraries}")
  set_tests_properties(shard.${shard} PROPERTIES TIMEOUT 900 ENVIRONMENT
    "${common};GTEST_TOTAL_SHARDS=${CUOP_SHARDS};GTEST_SHARD_INDEX=${shard}")
endforeach()
add_test(NAME libraries COMMAND cuop_tests "--gtest_filter=${of_libraries}")
set_tests_properties(libraries PROPERTIES TIMEOUT 900 ENVIRONMENT "${common}")
