# The tests that need a GPU, on those of this machine and on simulated ones.

# What needs a CUDA GPU; without one each test says so and is skipped.
file(GLOB CUOP_GPU_TEST_SOURCES CONFIGURE_DEPENDS gpu/*.cpp)
if(NOT CUOP_HAS_QUADMATH)
  list(FILTER CUOP_GPU_TEST_SOURCES EXCLUDE REGEX "/accuracy_test")
endif()
cuop_together(CUOP_GPU_TEST_SOURCES ${PROJECT_SOURCE_DIR} ${CUOP_GPU_TEST_SOURCES}
              ALONE "/ranges_test\\.cpp$")
add_executable(cuop_gpu_tests ${CUOP_GPU_TEST_SOURCES} $<TARGET_OBJECTS:cuop_conformance>)
target_include_directories(cuop_gpu_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/..)
target_link_libraries(cuop_gpu_tests PRIVATE cuop cuop_flags ${CUOP_QUADMATH} GTest::gtest_main
                                             GTest::gmock)
target_precompile_headers(cuop_gpu_tests PRIVATE ${CUOP_TEST_HEADERS})
set_source_files_properties(gpu/ranges_test.cpp PROPERTIES COMPILE_DEFINITIONS
                            CUOP_FAKE_NVTX="$<TARGET_FILE:cuop_fake_nvtx>")
add_dependencies(cuop_gpu_tests cuop_fake_nvtx)
# Tests that fill the GPU's memory or measure it want it for themselves.
set(CUOP_ALONE_ON_A_GPU GpuPool.* GpuRuntime.* Runtime_cuda.* GpuMeasure.* GpuUserKernel.*
    GpuLibraryTuning.*)
list(JOIN CUOP_ALONE_ON_A_GPU ":" CUOP_ALONE_ON_A_GPU)
gtest_discover_tests(cuop_gpu_tests TEST_PREFIX gpu. TEST_FILTER "-${CUOP_ALONE_ON_A_GPU}"
                     DISCOVERY_TIMEOUT 60)
gtest_discover_tests(cuop_gpu_tests TEST_PREFIX gpu. TEST_FILTER "${CUOP_ALONE_ON_A_GPU}"
                     DISCOVERY_TIMEOUT 60 PROPERTIES RUN_SERIAL TRUE)

# The distributed algorithms again, with the ranks' parts on GPUs.
file(GLOB sources CONFIGURE_DEPENDS gpu/ranks/*.cpp)
add_executable(cuop_gpu_rank_tests ${sources} $<TARGET_OBJECTS:cuop_conformance>
                                   $<TARGET_OBJECTS:cuop_rank_tests>)
target_include_directories(cuop_gpu_rank_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/..)
target_link_libraries(cuop_gpu_rank_tests PRIVATE cuop cuop_flags GTest::gtest GTest::gmock)
target_precompile_headers(cuop_gpu_rank_tests REUSE_FROM cuop_gpu_tests)
gtest_discover_tests(cuop_gpu_rank_tests TEST_PREFIX gpu.ranks. DISCOVERY_TIMEOUT 60)

# Ranks that are processes, with their buffers on GPUs.
file(GLOB sources CONFIGURE_DEPENDS gpu/processes/*.cpp)
add_executable(cuop_gpu_process_tests ${sources} gpu/ranks/box_cases.cpp gpu/ranks/fabric_cases.cpp
                                      gpu/ranks/fabric_order_cases.cpp gpu/ranks/on_gpu.cpp
                                      dist/socket_ranks.cpp $<TARGET_OBJECTS:cuop_conformance>)
target_include_directories(cuop_gpu_process_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/..)
target_link_libraries(cuop_gpu_process_tests PRIVATE cuop cuop_flags GTest::gtest GTest::gmock)
target_precompile_headers(cuop_gpu_process_tests REUSE_FROM cuop_gpu_tests)

# The same on a simulated GPU, which is there for tests alone and counted apart.
if(CUOP_SIMULATED_GPU)
  add_subdirectory(simulator)
endif()
if(TARGET cuop_simulated_driver)
  target_sources(cuop_tests PRIVATE simulator/block.cpp simulator/fiber.cpp simulator/races.cpp)
  target_compile_definitions(cuop_tests PRIVATE CUOP_TEST_FIBERS)
  foreach(tests cuop_gpu_tests cuop_gpu_rank_tests cuop_gpu_process_tests)
    add_dependencies(${tests} cuop_simulated_driver cuop_simulated_nvrtc cuop_simulated_cublas
                     cuop_simulated_cublaslt cuop_simulated_cudnn cuop_simulated_cufft
                     cuop_simulated_cusparse cuop_simulated_nccl)
  endforeach()
  # Left out: hundreds of kernels that would take minutes to compile; work that is long on purpose.
  set(CUOP_NOT_SIMULATED GpuElementwise.EveryOperationInEveryDtype
      GpuReduce.SumsOfEveryDtypeOverAllAxes GpuReduce.ExtremesAndTheirPlaces
      GpuOwnProduct.LargeSizes GpuOwnProduct.AnyKernelForAnyOperands GpuAccuracy.*
      GpuSplitProduct.LargeSizes GpuSplitProduct.ServesLargeMatmuls
      GpuSplitConv.ServesLargeConvolutions GpuSplitConv.IsAmongTheCandidatesOfASearch
      GpuSplitProduct.ARepeatedOperandIsSplitOnce Runtime_cuda.OrdersStreams)
  list(JOIN CUOP_NOT_SIMULATED ":" CUOP_NOT_SIMULATED)
  set(folder ${PROJECT_BINARY_DIR}/simulator)
  gtest_discover_tests(cuop_gpu_tests TEST_PREFIX sim. TEST_LIST CUOP_SIMULATED_TESTS
                       TEST_FILTER "-${CUOP_NOT_SIMULATED}" DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS sim TIMEOUT 600)
  gtest_discover_tests(cuop_gpu_rank_tests TEST_PREFIX sim.ranks. TEST_LIST CUOP_SIMULATED_RANK_TESTS
                       DISCOVERY_TIMEOUT 60 PROPERTIES LABELS sim TIMEOUT 600)
  set(simulated "LD_LIBRARY_PATH=${folder};CUOP_LIBRARY_PATH=${folder};CUOP_CACHE_DIR=${folder}/cache")
  # Simulated matrix units are a hundred times slower than the simulated cuBLASLt.
  string(APPEND simulated ";CUOP_SPLIT_PRODUCTS=0")
  # What is found in kernels that are wrong.
  add_executable(cuop_simulator_tests simulator/simulator_test.cpp)
  target_include_directories(cuop_simulator_tests PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(cuop_simulator_tests PRIVATE cuop cuop_flags GTest::gtest_main)
  add_dependencies(cuop_simulator_tests cuop_simulated_driver cuop_simulated_nvrtc)
  gtest_discover_tests(cuop_simulator_tests TEST_PREFIX sim. TEST_LIST CUOP_SIMULATOR_TESTS
                       DISCOVERY_TIMEOUT 60 PROPERTIES LABELS sim)
  # Races end a kernel, and work of streams begins late by chance. With the driver's allocator each
  # tensor is a block of its own, whose end is known; what is about the pool uses the pool.
  set(pooled "${simulated};SIM_DEVICES=2;SIM_RACES=1;SIM_DELAY_US=50")
  set(checked "${pooled};CUOP_CUDA_ALLOCATOR=driver")
  set(simulated_ranks "${simulated};SIM_DEVICES=3;SIM_RACES=1;SIM_DELAY_US=50")
  # Several variables cannot be given above: the semicolons between them get lost.
  file(WRITE ${folder}/environment.cmake
"foreach(test IN LISTS CUOP_SIMULATED_RANK_TESTS)
  set_tests_properties(\${test} PROPERTIES ENVIRONMENT \"${simulated_ranks}\")
endforeach()
foreach(test IN LISTS CUOP_SIMULATED_TESTS CUOP_SIMULATOR_TESTS)
  if(test MATCHES \"Gpu(Pool|Graph|Peers|Runtime|Tensor|HostLink)\\\\.|Runtime_cuda\")
    set_tests_properties(\${test} PROPERTIES ENVIRONMENT \"${pooled}\")
  else()
    set_tests_properties(\${test} PROPERTIES ENVIRONMENT \"${checked}\")
  endif()
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${folder}/environment.cmake)
endif()

# Ranks that are processes: gpu.processes.NAME on the GPUs of this machine, sim.processes.NAME on simulated
# ones. `settings` are variables of the environment; what follows is the command.
set(as_root "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
function(cuop_add_process_test name settings)
  if(NOT settings MATCHES "SIM_")
    add_test(NAME gpu.processes.${name} COMMAND ${ARGN})
    set_tests_properties(gpu.processes.${name} PROPERTIES PROCESSORS 2 TIMEOUT 600
                         SKIP_REGULAR_EXPRESSION "nothing is run: needs a CUDA GPU"
                         ENVIRONMENT "${as_root};${settings}")
  endif()
  if(TARGET cuop_simulated_driver)
    add_test(NAME sim.processes.${name} COMMAND ${ARGN})
    set_tests_properties(sim.processes.${name} PROPERTIES PROCESSORS 2 TIMEOUT 600 LABELS sim
                         ENVIRONMENT "${simulated_ranks};${as_root};${settings}")
  endif()
endfunction()

set(processes $<TARGET_FILE:cuop_gpu_process_tests>)
set(exchanges "--gtest_filter=Communicator_fabric.*:Communicator_boxes.*:Communicator_gpu.*xchange*")
cuop_add_process_test(sockets_2 "" ${processes} --processes=2)
cuop_add_process_test(sockets_4 "" ${processes} --processes=4
                      "--gtest_filter=Communicator_fabric.*:Communicator_order.*:Communicator_boxes.*:*.exchanges*")
cuop_add_process_test(killed "" ${processes} --processes=3 --killed)
cuop_add_process_test(killed_among_boxes "" ${processes} --processes=3 --killed=boxes)
# Streams that wait for a rank whose GPU has not come to a call yet.
foreach(what killed stopped left passed_on)
  cuop_add_process_test(waiting_${what} "" ${processes} --processes=3 --waiting=${what})
endforeach()
cuop_add_process_test(waiting_alone "" ${processes} --processes=2 --waiting=killed)
# Without them the hosts wait.
cuop_add_process_test(hosts_wait "CUOP_STREAM_FLAGS=0" ${processes} --processes=2
                      "--gtest_filter=Communicator_fabric.*:Communicator_order.*")
if(TARGET cuop_mpi AND MPIEXEC_EXECUTABLE)
  cuop_add_process_test(mpi_2 "" ${MPIEXEC_EXECUTABLE} ${CUOP_MPIEXEC_FLAGS}
                        ${MPIEXEC_NUMPROC_FLAG} 2 ${processes})
endif()
# Where nothing can be mapped, all goes through the host's memory.
cuop_add_process_test(unmapped "CUOP_CUDA_ALLOCATOR=plain;CUOP_NCCL=0" ${processes} --processes=2
                      ${exchanges})
# Or by NCCL; of ranks that share a GPU it takes one.
cuop_add_process_test(nccl_2 "CUOP_PEER_MAPPING=0" ${processes} --processes=2
                      "--gtest_filter=Communicator_fabric.*:Communicator_mapped.*")
cuop_add_process_test(nccl_4 "CUOP_PEER_MAPPING=0" ${processes} --processes=4 ${exchanges})
cuop_add_process_test(nccl_killed "CUOP_PEER_MAPPING=0" ${processes} --processes=3 --killed)
cuop_add_process_test(nothing_shared "CUOP_PEER_MAPPING=0" $<TARGET_FILE:cuop_gpu_rank_tests>
                      "--gtest_filter=GpuSharedTiles.*Once")
foreach(fault 1 2 3)  # it is found out, and the host's memory serves
  cuop_add_process_test(nccl_fault_${fault} "CUOP_PEER_MAPPING=0;SIM_NCCL_FAULT=${fault}"
                        ${processes} --processes=3 "--gtest_filter=*.ways_*:*.large_tensors*")
endforeach()
