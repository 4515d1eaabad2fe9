# Tests of how the text is written. Those that use a tool are tied to one version of it, and skipped where it is missing.
add_test(NAME format COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/format.cmake)
add_test(NAME tidy COMMAND ${CMAKE_COMMAND} -DSOURCE=${all_headers}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/style/tidy.cmake)
set_tests_properties(format tidy PROPERTIES LABELS style SKIP_REGULAR_EXPRESSION "SKIPPED: " TIMEOUT 1500)
set_tests_properties(tidy PROPERTIES COST 1000) # minutes on one core: what runs beside it should not wait for it at the end

# The reference of the headers: no public name without documentation, no reference to what is not there.
add_test(NAME reference COMMAND ${CMAKE_COMMAND} -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/reference -DSTRICT=ON
  -P ${PROJECT_SOURCE_DIR}/cmake/reference.cmake)
# The pages: every link leads somewhere, the page of errors has every id, and that of headers names what exists.
add_test(NAME links COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/links.cmake ${PROJECT_SOURCE_DIR})
add_test(NAME errors_page COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/errors_page.cmake
  ${PROJECT_SOURCE_DIR})
add_test(NAME headers_page COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/headers_page.cmake
  ${PROJECT_SOURCE_DIR})
add_test(NAME pages_see_what_is_broken
  COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/sees_broken_pages.cmake)
set_tests_properties(reference links errors_page headers_page pages_see_what_is_broken PROPERTIES LABELS style
  SKIP_REGULAR_EXPRESSION "SKIPPED: " TIMEOUT 300)
