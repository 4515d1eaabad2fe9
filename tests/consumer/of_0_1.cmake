# What was written for 0.1 compiles, and every old name says once what it is called now:
#   cmake -DCOMPILER=g++ -DINCLUDE=include -P of_0_1.cmake
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${COMPILER} -std=c++20 -Wall -Wextra -Wpedantic -fsyntax-only -DMTMC_COMPILED -I${INCLUDE}
    ${CMAKE_CURRENT_LIST_DIR}/of_0_1.cpp
  RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "What was written for 0.1 does not compile:\n${said}")
endif()

function(expect_once text)
  string(REGEX MATCHALL "(note|warning): [^\n]*${text}" found "${said}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "Expected one note or warning with \"${text}\", found ${count}:\n${said}")
  endif()
endfunction()
expect_once("MTMC_COMPILED is called MTMC_SEPARATE_COMPILATION now")
foreach(place IN ITEMS core/describe core/launch_lines core/validate_task loop/launcher evaluator/worker_server)
  expect_once("mtmc/${place}.hpp is mtmc/")
endforeach()
foreach(name IN ITEMS EvaluatorLocks CpuLocks)
  expect_once("${name}[^\n]* is deprecated: is [A-Za-z]+Defences now")
endforeach()
string(REGEX MATCHALL "warning: " warnings "${said}")
list(LENGTH warnings warnings)
if(NOT warnings EQUAL 5) # two types, and three calls of run_as_worker
  message(FATAL_ERROR "Expected five warnings, of the deprecated names, found ${warnings}:\n${said}")
endif()
