# cuop_precompile(TARGET HEADER...): headers that most of a target's files include are read once. Not
# by builds with sanitizers: there each file shows that it includes what it needs.
function(cuop_precompile target)
  if(NOT CUOP_SANITIZE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
