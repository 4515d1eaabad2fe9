# Tests of how mtmc is built, linked, installed and used, and of what must not compile.

# Every header compiles alone and twice, without a warning.
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include <${header}>\n#include <${header}>\n")
  list(APPEND headers_alone ${source})
  string(APPEND include_all "#include <${header}>\n")
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${headers_alone})
target_link_libraries(headers_alone PRIVATE mtmc::mtmc mtmc_warnings)
target_compile_options(headers_alone PRIVATE -O0 -g0) # only the compiler's words matter
set_target_properties(headers_alone PROPERTIES COMPILE_WARNING_AS_ERROR ON CXX_EXTENSIONS OFF)
set(keep_going -k)
if(CMAKE_GENERATOR MATCHES Ninja)
  set(keep_going -k 0)
endif()
add_test(NAME headers_compile_alone
  COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target headers_alone -- ${keep_going})
# Slow: a compilation for each header, six minutes and more on two cores.
set_tests_properties(headers_compile_alone PROPERTIES LABELS "build;slow" RUN_SERIAL ON TIMEOUT 2400)

# Two translation units that include everything link into one program.
add_executable(two_tu two_tu/first.cpp two_tu/second.cpp)
target_link_libraries(two_tu PRIVATE mtmc::mtmc mtmc_warnings)
set_target_properties(two_tu PROPERTIES COMPILE_WARNING_AS_ERROR ON)
add_test(NAME two_tu COMMAND two_tu)
set_tests_properties(two_tu PROPERTIES LABELS build)

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

# A host's own project that uses mtmc from its install tree (moved after the installation), as a subdirectory
# and through pkg-config.
set(consumer ${CMAKE_CURRENT_SOURCE_DIR}/consumer)
set(work ${CMAKE_CURRENT_BINARY_DIR}/consumer)
function(add_consumer_test name)
  add_test(NAME consumer/${name}
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${consumer} ${work}/${name} --build-generator ${CMAKE_GENERATOR}
      --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=Debug
        -DMTMC_VERSION=${PROJECT_VERSION} ${ARGN}
      --test-command consumer)
  set_tests_properties(consumer/${name} PROPERTIES LABELS build)
endfunction()
add_consumer_test(add_subdirectory -DMTMC_SOURCE_DIR=${PROJECT_SOURCE_DIR})
if(MTMC_INSTALL)
  add_test(NAME consumer/install COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DFIRST=${work}/staging
    -DTHEN=${work}/prefix -P ${consumer}/install.cmake)
  set_tests_properties(consumer/install PROPERTIES LABELS build FIXTURES_SETUP mtmc_installed)
  add_consumer_test(find_package -DCMAKE_PREFIX_PATH=${work}/prefix -DMTMC_WITH_WORKER=${MTMC_BUILD_EXAMPLES})
  add_consumer_test(pkg_config -DMTMC_PKG_CONFIG_PATH=${work}/prefix/share/pkgconfig)
  set_tests_properties(consumer/find_package consumer/pkg_config PROPERTIES FIXTURES_REQUIRED mtmc_installed
    SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endif()

# The vcpkg port has to repeat the version.
file(READ ${PROJECT_SOURCE_DIR}/cmake/packaging/vcpkg/ports/mtmc/vcpkg.json port)
string(JSON port_version GET "${port}" version)
if(NOT port_version STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "vcpkg.json says version ${port_version}, include/mtmc/version.hpp ${PROJECT_VERSION}.")
endif()
