# Overlay port, installed from the working tree it lies in:
#   vcpkg install mtmc --overlay-ports=<this repository>/cmake/packaging/vcpkg/ports
# vcpkg's binary cache knows the port but not the tree; after a change of the headers add --no-binarycaching.
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES compiled MTMC_INSTALL_COMPILED)
if(NOT "compiled" IN_LIST FEATURES)
  set(VCPKG_BUILD_TYPE release) # header-only
endif()
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../../../..")

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DMTMC_BUILD_TESTS=OFF -DMTMC_BUILD_EXAMPLES=OFF -DMTMC_INSTALL=ON ${features})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup()
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
