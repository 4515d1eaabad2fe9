# mtmc::compiled: what is no template, compiled once with the host's own compiler and flags. Every header
# `<mtmc/.../<name>_inl.hpp>` becomes one source file. Used in the source tree and, from the installed package, in a
# host's build; nothing is built unless a target links it. Position independent, because engines are shared libraries.
function(mtmc_add_compiled include_dir)
  file(GLOB_RECURSE definitions RELATIVE ${include_dir} CONFIGURE_DEPENDS ${include_dir}/mtmc/*_inl.hpp)
  foreach(header IN LISTS definitions)
    string(MAKE_C_IDENTIFIER ${header} name)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/mtmc_compiled/${name}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "#include <${header}>\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(mtmc_compiled STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(mtmc::compiled ALIAS mtmc_compiled)
  target_link_libraries(mtmc_compiled PUBLIC mtmc::mtmc)
  target_compile_definitions(mtmc_compiled PUBLIC MTMC_COMPILED)
  set_target_properties(mtmc_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
