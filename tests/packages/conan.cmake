# Creates the Conan package as the head of its recipe says for a machine without a network, and has its test_package make
# a kernel faster. Conan's own files stay in WORK.
cmake_minimum_required(VERSION 3.25)

find_program(CONAN conan)
if(NOT CONAN)
  message("SKIPPED: conan is not installed (python3 -m pip install conan)")
  return()
endif()
set(recipe ${CMAKE_CURRENT_LIST_DIR}/../../cmake/packaging/conan)
file(REMOVE_RECURSE ${WORK})
set(ENV{CONAN_HOME} ${WORK}/home)
set(ENV{CXX} ${COMPILER})

# The profile that stands in the recipe's head.
file(STRINGS ${recipe}/conanfile.py lines REGEX "^    (\\[platform_requires\\]|[a-z_0-9]+/[0-9.]+)$")
list(TRANSFORM lines STRIP)
list(JOIN lines "\n" profile)
file(WRITE ${WORK}/system.profile "${profile}\n")

# All of mtmc::compiled as one source file, and not optimised: the least that building it can cost.
file(WRITE ${WORK}/quick.profile "[conf]\ntools.cmake.cmaketoolchain:extra_variables={'CMAKE_UNITY_BUILD': 'ON', \
'CMAKE_UNITY_BUILD_BATCH_SIZE': '0', 'CMAKE_CXX_FLAGS_DEBUG': '-O0'}\n")
execute_process(COMMAND ${CONAN} profile detect OUTPUT_QUIET ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CONAN} create ${recipe} -pr default -pr ${WORK}/system.profile -pr ${WORK}/quick.profile
    -s compiler.cppstd=20 -s build_type=Debug --test-folder=${recipe}/test_package --no-remote
  COMMAND_ERROR_IS_FATAL ANY)
