# Tests of how mtmc is built, linked, installed and used, and of what must not compile.

# Every header compiles alone and twice, without a warning.
foreach(header IN LISTS headers)
  file(STRINGS ${header} old_place REGEX "^#pragma message.\"mtmc/.* is mtmc/")
  if(old_place) # does no more than say so
    continue()
  endif()
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include <${header}>\n#include <${header}>\n")
  list(APPEND headers_alone ${source})
  if(NOT header STREQUAL mtmc/implementation.hpp) # has to come first
    string(APPEND include_all "#include <${header}>\n")
  endif()
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${headers_alone})
target_link_libraries(headers_alone PRIVATE mtmc::mtmc mtmc_warnings)
target_compile_options(headers_alone PRIVATE -O0 -g0) # only the compiler's words matter
set_target_properties(headers_alone PROPERTIES COMPILE_WARNING_AS_ERROR ON CXX_EXTENSIONS OFF)
set(all_headers ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp)
file(GENERATE OUTPUT ${all_headers} CONTENT "${include_all}")
set(keep_going -k)
if(CMAKE_GENERATOR MATCHES Ninja)
  set(keep_going -k 0)
endif()
add_test(NAME headers_compile_alone
  COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target headers_alone -- ${keep_going})
# Slow: a compilation for each header, six minutes and more on two cores.
set_tests_properties(headers_compile_alone PROPERTIES LABELS "build;slow" RUN_SERIAL ON TIMEOUT 2400)

# Engines for two_engines/: shared libraries that mtmc::compiled is linked into, as it comes and hidden.
foreach(form "" _hidden)
  add_library(engine${form} OBJECT two_engines/engine.cpp)
  target_link_libraries(engine${form} PUBLIC mtmc::compiled PRIVATE mtmc_warnings)
  set_target_properties(engine${form} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(name first second)
    add_library(engine_${name}${form} MODULE)
    target_link_libraries(engine_${name}${form} PRIVATE engine${form})
    add_dependencies(test_two_engines engine_${name}${form})
  endforeach()
endforeach()
set_target_properties(engine_hidden PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_options(engine_hidden INTERFACE LINKER:--exclude-libs,ALL)

# Two translation units that include everything link into one program.
add_executable(two_tu two_tu/first.cpp two_tu/second.cpp)
target_link_libraries(two_tu PRIVATE mtmc::mtmc mtmc_warnings)
set_target_properties(two_tu PROPERTIES COMPILE_WARNING_AS_ERROR ON)
add_test(NAME two_tu COMMAND two_tu)
set_tests_properties(two_tu PROPERTIES LABELS build)

# Forms and versions that are mixed, and an implementation that is missing or there twice.
add_test(NAME forms COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER} -DINCLUDE=${PROJECT_SOURCE_DIR}/include
  -DWORK=${CMAKE_CURRENT_BINARY_DIR}/forms -P ${CMAKE_CURRENT_SOURCE_DIR}/forms/check.cmake)
set_tests_properties(forms PROPERTIES LABELS build)

# Clang reads all headers where GCC builds everything else: it misses what GCC 12 knows (lambdas that capture structured bindings).
find_program(MTMC_TEST_clang++ clang++)
if(MTMC_TEST_clang++)
  add_test(NAME all_headers/clang++ COMMAND ${MTMC_TEST_clang++} -std=c++20 -Wall -Wextra -Werror -fsyntax-only
    -I${PROJECT_SOURCE_DIR}/include ${all_headers})
  set_tests_properties(all_headers/clang++ PROPERTIES LABELS build)
endif()

# What each compiler at hand says where something is missing. Every header is tried with GCC, which stops at the first
# error; Clang reads on in silence.
foreach(compiler g++ clang++)
  find_program(MTMC_TEST_${compiler} ${compiler})
  if(MTMC_TEST_${compiler})
    set(every OFF)
    if(compiler STREQUAL g++)
      set(every ON)
    endif()
    add_test(NAME requirements/${compiler}
      COMMAND ${CMAKE_COMMAND} -DCOMPILER=${MTMC_TEST_${compiler}} -DINCLUDE=${PROJECT_SOURCE_DIR}/include
        -DEVERY=${every} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/requirements/${compiler}
        -P ${CMAKE_CURRENT_SOURCE_DIR}/requirements/check.cmake)
    set_tests_properties(requirements/${compiler} PROPERTIES LABELS build)
  endif()
endforeach()

# The include rules between the folders of include/mtmc, and proof that the check sees what breaks them.
set(check_layering ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/layering/check.cmake)
add_test(NAME layering COMMAND ${check_layering} ${PROJECT_SOURCE_DIR}/include/mtmc)
add_test(NAME layering_sees_violations
  COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_SOURCE_DIR}/layering/sees_violations.cmake)
set_tests_properties(layering layering_sees_violations PROPERTIES LABELS build)

# Each compile_fail/<name>.cpp must be rejected by every compiler at hand, with the sentence it expects.
file(GLOB sources CONFIGURE_DEPENDS compile_fail/*.cpp)
foreach(compiler g++ clang++)
  find_program(MTMC_TEST_${compiler} ${compiler})
  if(MTMC_TEST_${compiler})
    foreach(source IN LISTS sources)
      cmake_path(GET source STEM name)
      add_test(NAME compile_fail/${name}/${compiler}
        COMMAND ${CMAKE_COMMAND} -DCOMPILER=${MTMC_TEST_${compiler}} -DSOURCE=${source}
          -DINCLUDE=${PROJECT_SOURCE_DIR}/include
          -DSYSTEM_INCLUDE=$<JOIN:$<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>,|>
          -P ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.cmake)
      set_tests_properties(compile_fail/${name}/${compiler} PROPERTIES LABELS build)
    endforeach()
  endif()
endforeach()

# A host's own project that uses mtmc from its install tree (moved after the installation), as a subdirectory,
# through pkg-config and by its own command lines; and one whose engine is a shared library with mtmc::compiled inside, all of which is then
# built anew, as one source file, which is slow.
set(consumer ${CMAKE_CURRENT_SOURCE_DIR}/consumer)
set(work ${CMAKE_CURRENT_BINARY_DIR}/consumer)
function(add_consumer_test name project)
  add_test(NAME consumer/${name}
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${project} ${work}/${name} --build-generator ${CMAKE_GENERATOR}
      --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
        -DMTMC_VERSION=${PROJECT_VERSION} ${ARGN}
      --test-command consumer)
  set_tests_properties(consumer/${name} PROPERTIES LABELS build)
endfunction()
set(shared ${consumer}/shared)
set(one_source -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0)
set(command_lines ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION})
add_consumer_test(add_subdirectory ${consumer} -DMTMC_SOURCE_DIR=${PROJECT_SOURCE_DIR})
add_consumer_test(shared_add_subdirectory ${shared} -DMTMC_SOURCE_DIR=${PROJECT_SOURCE_DIR} ${one_source})
add_test(NAME consumer/command_lines
  COMMAND ${command_lines} -DWORK=${work}/command_lines -P ${consumer}/command_lines.cmake)
# consumer/fetched configures as a subdirectory does, and consumer/find_package compiles the same program.
set_tests_properties(consumer/add_subdirectory consumer/shared_add_subdirectory consumer/command_lines
  PROPERTIES LABELS "build;slow")
add_test(NAME consumer/prebuilt COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DCOMPILER=${CMAKE_CXX_COMPILER}
  -DFLAGS=-O0 -DVERSION=${PROJECT_VERSION} -DWORK=${work}/prebuilt -P ${consumer}/prebuilt.cmake)
set_tests_properties(consumer/prebuilt PROPERTIES LABELS "build;slow")
add_test(NAME consumer/of_0_1 COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER}
  -DINCLUDE=${PROJECT_SOURCE_DIR}/include -P ${consumer}/of_0_1.cmake)
set_tests_properties(consumer/of_0_1 PROPERTIES LABELS build)
add_test(NAME consumer/fetched COMMAND ${CMAKE_COMMAND} -S ${consumer}/fetched -B ${work}/fetched
  -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DMTMC_SOURCE_DIR=${PROJECT_SOURCE_DIR})
set_tests_properties(consumer/fetched PROPERTIES LABELS build)
if(MTMC_INSTALL)
  set(prefix ${work}/prefix)
  add_test(NAME consumer/install COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DFIRST=${work}/staging
    -DTHEN=${prefix} -P ${consumer}/install.cmake)
  set_tests_properties(consumer/install PROPERTIES LABELS build FIXTURES_SETUP mtmc_installed)
  add_consumer_test(find_package ${consumer} -DCMAKE_PREFIX_PATH=${prefix} -DMTMC_WITH_WORKER=${MTMC_BUILD_EXAMPLES})
  add_consumer_test(pkg_config ${consumer} -DMTMC_PKG_CONFIG_PATH=${prefix}/share/pkgconfig)
  add_consumer_test(shared_find_package ${shared} -DCMAKE_PREFIX_PATH=${prefix} -DMTMC_COMPONENTS=compiled ${one_source})
  add_test(NAME consumer/pkg_config_command_lines COMMAND ${command_lines} -DWORK=${work}/pkg_config_command_lines
    -DPKG_CONFIG_PATH=${prefix}/share/pkgconfig -P ${consumer}/command_lines.cmake)
  set_tests_properties(consumer/shared_find_package consumer/pkg_config consumer/pkg_config_command_lines
    PROPERTIES LABELS "build;slow")
  add_test(NAME consumer/unknown_component COMMAND ${CMAKE_COMMAND} -S ${shared} -B ${work}/unknown_component
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_PREFIX_PATH=${prefix} -DMTMC_VERSION=${PROJECT_VERSION}
    -DMTMC_COMPONENTS=trained)
  string(REPLACE " " "[ \n]+" sentence
    "mtmc has no component \"trained\"\\. Its only component is \"compiled\", with the target mtmc::compiled")
  set_tests_properties(consumer/unknown_component PROPERTIES LABELS build PASS_REGULAR_EXPRESSION "${sentence}")
  set_tests_properties(consumer/find_package consumer/pkg_config consumer/shared_find_package
    consumer/pkg_config_command_lines consumer/unknown_component PROPERTIES FIXTURES_REQUIRED mtmc_installed)
  set_tests_properties(consumer/pkg_config consumer/pkg_config_command_lines PROPERTIES
    SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endif()

# The packages of vcpkg, whose functions are stood in for, and of Conan, which builds mtmc::compiled anew.
foreach(package vcpkg conan)
  add_test(NAME packages/${package} COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER}
    -DWORK=${CMAKE_CURRENT_BINARY_DIR}/packages/${package} -P ${CMAKE_CURRENT_SOURCE_DIR}/packages/${package}.cmake)
  set_tests_properties(packages/${package} PROPERTIES LABELS build SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endforeach()
set_tests_properties(packages/conan PROPERTIES LABELS "build;slow" TIMEOUT 2400)

# The vcpkg port has to repeat the version.
file(READ ${PROJECT_SOURCE_DIR}/cmake/packaging/vcpkg/ports/mtmc/vcpkg.json port)
string(JSON port_version GET "${port}" version)
if(NOT port_version STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "vcpkg.json says version ${port_version}, include/mtmc/version.hpp ${PROJECT_VERSION}.")
endif()

# implementation.hpp has every definition that MTMC_SEPARATE_COMPILATION leaves out.
file(GLOB_RECURSE definitions RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/mtmc/*_inl.hpp)
file(STRINGS ${PROJECT_SOURCE_DIR}/include/mtmc/implementation.hpp implementation)
foreach(header IN LISTS definitions)
  if(NOT "#include <${header}>" IN_LIST implementation)
    message(FATAL_ERROR "include/mtmc/implementation.hpp lacks #include <${header}>")
  endif()
endforeach()
