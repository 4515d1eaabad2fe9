# Tests of how the text is written. They are tied to one version of the tools, and skipped where it is missing.
add_test(NAME format COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/format.cmake)
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp CONTENT "${include_all}")
add_test(NAME tidy COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp
  -P ${CMAKE_CURRENT_SOURCE_DIR}/style/tidy.cmake)
set_tests_properties(format tidy PROPERTIES LABELS style SKIP_REGULAR_EXPRESSION "SKIPPED: " TIMEOUT 900)
