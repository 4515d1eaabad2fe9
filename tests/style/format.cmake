# Checks the format of our C++ with clang-format 19; other versions format differently.
# Kernels (examples/tasks) and test data stay as their authors wrote them.
cmake_minimum_required(VERSION 3.25)
file(REAL_PATH ../.. root BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})

find_program(CLANG_FORMAT NAMES clang-format-19 clang-format HINTS ${root}/build/style/bin)
set(found "none")
if(CLANG_FORMAT)
  execute_process(COMMAND ${CLANG_FORMAT} --version OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT found MATCHES "version 19\\.")
  message("SKIPPED: clang-format 19 is not installed (found: ${found}); run cmake/bootstrap.sh --style")
  return()
endif()

file(GLOB_RECURSE files ${root}/include/*.hpp ${root}/tests/*.hpp ${root}/tests/*.cpp ${root}/examples/*.hpp
  ${root}/examples/*.cpp)
list(FILTER files EXCLUDE REGEX "/(tasks|data|exploits|corpus|recorded)/")
execute_process(COMMAND ${CLANG_FORMAT} --dry-run --Werror ${files} RESULT_VARIABLE failed ERROR_VARIABLE complaints)
if(failed)
  string(REGEX MATCHALL "/[^\n:]+:[0-9]+:" places "${complaints}")
  list(TRANSFORM places REPLACE ":.*" "")
  list(REMOVE_DUPLICATES places)
  list(JOIN places "\n  " places)
  message(FATAL_ERROR "Not formatted; run ${CLANG_FORMAT} -i on\n  ${places}")
endif()
