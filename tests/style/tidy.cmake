# Runs clang-tidy 19 with the repository's .clang-tidy over a file that includes every header.
cmake_minimum_required(VERSION 3.25)
file(REAL_PATH ../.. root BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})

find_program(CLANG_TIDY NAMES clang-tidy-19 clang-tidy HINTS ${root}/build/style/bin)
set(found "none")
if(CLANG_TIDY)
  execute_process(COMMAND ${CLANG_TIDY} --version OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT found MATCHES "version 19\\.")
  message("SKIPPED: clang-tidy 19 is not installed (found: ${found}); run cmake/bootstrap.sh --style")
  return()
endif()

execute_process(COMMAND ${CLANG_TIDY} --quiet ${SOURCE} -- -std=c++20 -I${root}/include RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "clang-tidy has findings (above).")
endif()
