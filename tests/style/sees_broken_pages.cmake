# links.cmake, errors_page.cmake and headers_page.cmake must accept what is right and name each way of breaking it.
cmake_minimum_required(VERSION 3.25)

string(RANDOM suffix)
set(root /tmp/mtmc-pages-${suffix})

function(check script outcome) # the rest are pairs: file, its text
  file(REMOVE_RECURSE ${root})
  while(ARGN)
    list(POP_FRONT ARGN file text)
    file(WRITE ${root}/${file} "${text}\n")
  endwhile()
  execute_process(COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${script}.cmake ${root}
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  file(REMOVE_RECURSE ${root})
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${outcome}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "Expected: ${outcome}\nThe check said: ${output}")
  endif()
endfunction()

check(links "2 links of 2 pages lead somewhere" README.md "(see [a](examples/a.md#one-step) and [web](https://nowhere/x))"
  examples/a.md "# A\n\n## One step\n\n[up](..)")
check(links "README.md: b.md" README.md "[b](b.md)")
check(links "examples/a.md: ../b" examples/a.md "[b](../b)")
check(links "README.md: #two (there is no such heading)" README.md "# One\n\n[two](#two)")
check(links "1 links of 1 pages" README.md "[self](README.md)\n```sh\necho [b](b.md)\n```")

set(header include/mtmc/core/error.hpp "inline constexpr std::string_view a = \"mtmc.a.001\"")
set(page examples/contracts/errors.md)
set(row "| `mtmc.a.001` | meaning | who | what |")
check(errors_page "all 1 ids are explained" ${header} ${page} "# Errors\n\n${row}")
check(errors_page "mtmc.a.001 has no row" ${header} ${page} "# Errors")
check(errors_page "mtmc.a.002 is no id" ${header} ${page} "${row}\n| `mtmc.a.002` | meaning | who | what |")
check(errors_page "mtmc.a.001 has two rows" ${header} ${page} "${row}\n${row}")
check(errors_page "mtmc.a.001 has not four cells" ${header} ${page} "| `mtmc.a.001` | meaning | who | |")

set(headers include/mtmc/core/a.hpp "// nothing" include/mtmc/old/a.hpp
  "#pragma message(\"mtmc/old/a.hpp is mtmc/core/a.hpp now: until 0.3\")")
set(page examples/contracts/headers.md)
set(row "| `core` | `a` | nothing |")
set(old "| `old/a.hpp` | `core/a.hpp` |")
check(headers_page "the headers of 1 folders are there" ${headers} ${page} "${row}\n${old}")
check(headers_page "core/b.hpp does not exist" ${headers} ${page} "| `core` | `a`, `b` | nothing |\n${old}")
check(headers_page "core/c.hpp does not exist" ${headers} ${page} "${row}\n${old}\n`core/c.hpp`")
check(headers_page "old/a.hpp is an old place and is not named" ${headers} ${page} "${row}")
check(headers_page "no table of public headers" ${headers} ${page} "${old}")
