# Passes if COMPILER rejects SOURCE and says the sentence of the first line of SOURCE, "// expect: <sentence>".
cmake_minimum_required(VERSION 3.25)

file(STRINGS ${SOURCE} expected LIMIT_COUNT 1)
if(NOT expected MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${SOURCE}:1: the first line must read \"// expect: <sentence the compiler must say>\".")
endif()
set(sentence "${CMAKE_MATCH_1}")

string(REPLACE "|" ";" system_include "${SYSTEM_INCLUDE}")
list(REMOVE_ITEM system_include /usr/include) # naming it hides the compiler's own headers
list(TRANSFORM system_include PREPEND -isystem)
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE} ${system_include} ${SOURCE}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but it must be rejected with: ${sentence}")
endif()
string(FIND "${output}" "${sentence}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "${SOURCE} is rejected, but not with: ${sentence}\nThe compiler said:\n${output}")
endif()
