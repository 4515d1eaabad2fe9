# Passes if COMPILER, where it lacks something, is told so in one sentence by the headers below INCLUDE, and says nothing
# of its own. EVERY: each header is tried, not only the one that says it. WORK is a folder to write into.
cmake_minimum_required(VERSION 3.25)

set(violations "")
set(source ${WORK}/source.cpp)
function(expect_only sentence text) # the rest are the compiler's options
  file(WRITE ${source} "${text}\n")
  execute_process(COMMAND ${COMPILER} ${ARGN} -fsyntax-only -w -I${INCLUDE} ${source}
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX MATCHALL "error: [^\n]*" errors "${output}")
  string(REGEX REPLACE "[\"']|#error " "" errors "${errors}")
  if(NOT errors MATCHES "^error: ${sentence}[^;]*;error: see the error above[^;]*$")
    list(JOIN ARGN " " options)
    string(APPEND violations "\n\n${text}\nwith ${options} must say only: ${sentence}\nThe compiler said:\n${output}")
    set(violations "${violations}" PARENT_SCOPE)
  endif()
endfunction()

set(first "#include <mtmc/requirements.hpp>\nwhat is no C++")
expect_only("mtmc needs exceptions: take -fno-exceptions out" ${first} -std=c++20 -fno-exceptions)
expect_only("mtmc is a library for C\\+\\+20: compile this file as C\\+\\+" ${first} -x c)

# Compilers and libraries that are not here, by what they would say of themselves.
set(too_old "this compiler is too old: mtmc needs GCC 12, Clang 14 or newer")
expect_only(${too_old} "#undef __clang__\n#undef __GNUC__\n#define __GNUC__ 11\n${first}" -std=c++20)
expect_only(${too_old} "#undef __clang__\n#define __clang__ 1\n#define __clang_major__ 13\n${first}" -std=c++20)
expect_only("this standard library is too old: mtmc needs libstdc\\+\\+ 11"
  "#include <version>\n#undef _GLIBCXX_RELEASE\n#define _GLIBCXX_RELEASE 10\n${first}" -std=c++20)
expect_only("mtmc needs std::stop_token" "#include <version>\n#undef __cpp_lib_jthread\n${first}" -std=c++20)

# Whichever header comes first. The exceptions can be used in any C++17.
set(no_cpp20 "mtmc needs C\\+\\+20: add -std=c\\+\\+20")
expect_only(${no_cpp20} ${first} -std=c++17)
if(EVERY)
  file(GLOB_RECURSE headers RELATIVE ${INCLUDE} ${INCLUDE}/mtmc/*.hpp)
  list(REMOVE_ITEM headers mtmc/version.hpp mtmc/compiled.hpp)
  foreach(header IN LISTS headers)
    expect_only(${no_cpp20} "#include <${header}>" -std=c++17)
  endforeach()
endif()

if(violations)
  message(FATAL_ERROR "A header that includes no other of mtmc must begin with <mtmc/requirements.hpp>.${violations}")
endif()
