# Makes the reference of the public headers with Doxygen, OUTPUT/html/index.html:
#   cmake -DOUTPUT=build/reference -P cmake/reference.cmake
# With -DSTRICT=ON a warning of Doxygen is an error, and it must be 1.9, because every version warns of other things; where
# there is no 1.9 it says "SKIPPED: " and why.
cmake_minimum_required(VERSION 3.25)
file(REAL_PATH .. root BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
if(NOT OUTPUT)
  message(FATAL_ERROR "Where to? Say -DOUTPUT=<folder> before -P.")
endif()
file(REAL_PATH ${OUTPUT} output)

find_program(DOXYGEN NAMES doxygen)
set(found "none")
if(DOXYGEN)
  execute_process(COMMAND ${DOXYGEN} --version OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(STRICT AND NOT found MATCHES "^1\\.9\\.")
  message("SKIPPED: Doxygen 1.9 is not installed (found: ${found}); run cmake/bootstrap.sh --style")
  return()
elseif(NOT DOXYGEN)
  message(FATAL_ERROR "Doxygen is not installed; run cmake/bootstrap.sh --style")
endif()

# Neither definitions nor headers that only name the new place of another.
file(GLOB_RECURSE headers RELATIVE ${root} ${root}/include/mtmc/*.hpp)
list(FILTER headers EXCLUDE REGEX "_inl\\.hpp$")
set(input "")
foreach(header IN LISTS headers)
  file(STRINGS ${root}/${header} moved REGEX "^#pragma message\\(\"mtmc/.* is mtmc/")
  if(NOT moved)
    string(APPEND input "INPUT += ${header}\n")
  endif()
endforeach()

file(STRINGS ${root}/include/mtmc/version.hpp version REGEX "^#define MTMC_VERSION_(MAJOR|MINOR|PATCH) ")
list(TRANSFORM version REPLACE "[^0-9]*([0-9]+).*" "\\1")
list(JOIN version "." version)

set(warnings NO)
if(STRICT)
  set(warnings FAIL_ON_WARNINGS)
endif()
file(MAKE_DIRECTORY ${output})
file(WRITE ${output}/Doxyfile "@INCLUDE = ${root}/cmake/Doxyfile
PROJECT_NUMBER = ${version}
OUTPUT_DIRECTORY = \"${output}\"
STRIP_FROM_PATH = include
STRIP_FROM_INC_PATH = include
WARN_AS_ERROR = ${warnings}
${input}")
execute_process(COMMAND ${DOXYGEN} ${output}/Doxyfile WORKING_DIRECTORY ${root} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "Doxygen has complaints (above).")
endif()
message(STATUS "the reference is ${output}/html/index.html")
