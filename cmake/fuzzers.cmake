# Flags of a build for fuzzing: all of it, mtmc::compiled too, is watched by the sanitizers and counts its branches.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "MTMC_BUILD_FUZZERS needs Clang, whose runtime has libFuzzer, and this is ${CMAKE_CXX_COMPILER_ID}: "
    "configure with `cmake --preset fuzz`, or with -DCMAKE_CXX_COMPILER=clang++ in a fresh build folder")
endif()
add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(-fsanitize=address,undefined)
