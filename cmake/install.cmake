# Installs the headers, the CMake package (share/mtmc), the pkg-config files and the licence, and on request
# mtmc::compiled as a library, so that hosts need not build it. All of it can be moved.
option(MTMC_INSTALL_COMPILED "Install mtmc::compiled built, too" OFF)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

foreach(library nlohmann_json tinyxml2)
  if(NOT ${library}_FOUND)
    message(FATAL_ERROR "MTMC_INSTALL needs an installed ${library}: the installed mtmc package looks for it, and "
      "a copy that was only fetched is not there to be found. Install it (Debian: apt-get install "
      "nlohmann-json3-dev libtinyxml2-dev) or configure with -DMTMC_INSTALL=OFF.")
  endif()
endforeach()

set(package_dir ${CMAKE_INSTALL_DATADIR}/mtmc)
install(TARGETS mtmc EXPORT mtmcTargets FILE_SET HEADERS)
install(EXPORT mtmcTargets NAMESPACE mtmc:: DESTINATION ${package_dir})

set(independent ARCH_INDEPENDENT)
if(MTMC_INSTALL_COMPILED)
  set(independent "")
  set_target_properties(mtmc_compiled PROPERTIES EXCLUDE_FROM_ALL OFF EXPORT_NAME compiled OUTPUT_NAME mtmc)
  install(TARGETS mtmc_compiled EXPORT mtmcCompiledTargets)
  install(EXPORT mtmcCompiledTargets NAMESPACE mtmc:: DESTINATION ${package_dir})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/mtmcConfig.cmake.in ${PROJECT_BINARY_DIR}/mtmcConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mtmcConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ${independent})
install(FILES ${PROJECT_BINARY_DIR}/mtmcConfig.cmake ${PROJECT_BINARY_DIR}/mtmcConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/compiled.cmake
  DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig
  OUTPUT_VARIABLE pkgconfig_to_include)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig
  OUTPUT_VARIABLE pkgconfig_to_lib)
set(form_of_compiled "one of your source files includes <mtmc/implementation.hpp>")
set(libs_of_compiled "")
if(MTMC_INSTALL_COMPILED)
  set(form_of_compiled "the library is installed")
  set(libs_of_compiled "Libs: -L\${pcfiledir}/${pkgconfig_to_lib} -lmtmc")
endif()
foreach(form mtmc mtmc-compiled)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${form}.pc.in ${PROJECT_BINARY_DIR}/${form}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${form}.pc DESTINATION ${pkgconfig_dir})
endforeach()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/mtmc)
