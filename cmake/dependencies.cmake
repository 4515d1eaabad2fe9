# Every dependency: an installed copy first, the pinned source second. `target` may also come from a host that
# already added the library to its own build.
include(FetchContent)

macro(mtmc_find_or_fetch name target version url sha256)
  if(NOT TARGET ${target})
    FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${sha256} DOWNLOAD_EXTRACT_TIMESTAMP TRUE SYSTEM
                         FIND_PACKAGE_ARGS ${version} CONFIG GLOBAL)
    FetchContent_MakeAvailable(${name})
  endif()
endmacro()

macro(mtmc_find_or_fetch_json)
  mtmc_find_or_fetch(nlohmann_json nlohmann_json::nlohmann_json 3.11
    https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
    d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
endmacro()

# Its package admits no newer major version than the one asked for, and 9 and all since will do. Built here it is a static
# library, which must fit into a host's shared libraries, too.
macro(mtmc_find_or_fetch_tinyxml2)
  if(NOT TARGET tinyxml2::tinyxml2)
    set(tinyxml2_BUILD_TESTING OFF)
    mtmc_find_or_fetch(tinyxml2 tinyxml2::tinyxml2 ""
      https://github.com/leethomason/tinyxml2/archive/refs/tags/10.0.0.tar.gz
      3bdf15128ba16686e69bce256cc468e76c7b94ff2c7f391cc5ec09e40bff3839)
    if(TARGET tinyxml2)
      set_target_properties(tinyxml2 PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
  endif()
endmacro()

macro(mtmc_find_or_fetch_doctest)
  mtmc_find_or_fetch(doctest doctest::doctest 2.4
    https://github.com/doctest/doctest/archive/refs/tags/v2.4.11.tar.gz
    632ed2c05a7f53fa961381497bf8069093f0d6628c5f26286161fbd32a560186)
endmacro()

macro(mtmc_find_or_fetch_cli11)
  mtmc_find_or_fetch(CLI11 CLI11::CLI11 2.1
    https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
    f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a)
endmacro()
