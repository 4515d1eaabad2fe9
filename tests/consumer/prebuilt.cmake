# Installs SOURCE with mtmc::compiled built (FLAGS are its compiler's), and builds the host with an engine in a shared library
# with it, through CMake and through pkg-config, without compiling anything of mtmc again. WORK is a folder to write into.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK})
set(run ${CMAKE_COMMAND} -E env CXX=${COMPILER} CXXFLAGS=${FLAGS} ${CMAKE_COMMAND})
execute_process(COMMAND ${run} -S ${SOURCE} -B ${WORK}/build -DMTMC_INSTALL_COMPILED=ON -DMTMC_BUILD_TESTS=OFF
  -DMTMC_BUILD_EXAMPLES=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${run} --build ${WORK}/build OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${run} --install ${WORK}/build --prefix ${WORK}/staging OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${WORK}/build)
file(RENAME ${WORK}/staging ${WORK}/prefix)

execute_process(COMMAND ${run} -S ${CMAKE_CURRENT_LIST_DIR}/shared -B ${WORK}/host -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DMTMC_VERSION=${VERSION} -DMTMC_COMPONENTS=compiled OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${run} --build ${WORK}/host --verbose OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(output MATCHES "mtmc_compiled/")
  message(FATAL_ERROR "The host compiles mtmc::compiled, which is installed:\n${output}")
endif()
execute_process(COMMAND ${WORK}/host/consumer COMMAND_ERROR_IS_FATAL ANY)

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/share/pkgconfig)
  execute_process(COMMAND sh -c "${COMPILER} -std=c++20 ${FLAGS} -DEXPECTED_VERSION='\"${VERSION}\"' main.cpp \
-o ${WORK}/consumer $(pkg-config --cflags --libs mtmc-compiled)" WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${WORK}/consumer COMMAND_ERROR_IS_FATAL ANY)
endif()
