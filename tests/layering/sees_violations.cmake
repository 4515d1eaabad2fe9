# check.cmake must accept a small tree that keeps the rules and name each way of breaking them.
cmake_minimum_required(VERSION 3.25)

string(RANDOM suffix)
set(root /tmp/mtmc-layering-${suffix})

function(check outcome) # the rest are pairs: header, its text
  file(REMOVE_RECURSE ${root})
  while(ARGN)
    list(POP_FRONT ARGN header text)
    file(WRITE ${root}/${header} "${text}\n")
  endwhile()
  execute_process(COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check.cmake ${root}
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  file(REMOVE_RECURSE ${root})
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${outcome}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "Expected: ${outcome}\nThe check said: ${output}")
  endif()
endfunction()

set(nothing "// nothing")
set(empty support/a.hpp ${nothing})
check("5 headers keep the layering" ${empty} core/b.hpp "#include <mtmc/support/a.hpp>"
  analysis/c.hpp "#include <mtmc/core/b.hpp>" coder/transform/d.hpp "#include <mtmc/analysis/c.hpp>"
  mtmc.hpp "#include <mtmc/coder/transform/d.hpp>")
check("support/b.hpp: must not include <mtmc/core/a.hpp>" core/a.hpp ${nothing} support/b.hpp "#include <mtmc/core/a.hpp>")
check("coder/b.hpp: must not include <mtmc/analysis/a.hpp>" analysis/a.hpp ${nothing}
  coder/b.hpp "#include <mtmc/analysis/a.hpp>")
check("policy/b.hpp: must not include <mtmc/coder/a.hpp>" coder/a.hpp ${nothing} policy/b.hpp "#include <mtmc/coder/a.hpp>")
check("train/b.hpp: must not include <mtmc/loop/loop.hpp>" loop/loop.hpp ${nothing} loop/journal.hpp ${nothing}
  train/a.hpp "#include <mtmc/loop/journal.hpp>" train/b.hpp "#include <mtmc/loop/loop.hpp>")
check("core/b.hpp: must not include <mtmc/mtmc.hpp>" mtmc.hpp ${nothing} core/b.hpp "#include <mtmc/mtmc.hpp>")
check("core/b.hpp: includes <iostream>, which no header may" ${empty} core/b.hpp "#include <iostream>")
check("in core only core/json*.hpp may" core/json.hpp "#include <nlohmann/json.hpp>"
  core/b.hpp "#include <nlohmann/json.hpp>")
check("core/b.hpp: includes with quotes" ${empty} core/b.hpp "#include \"a.hpp\"")
check("core/b.hpp: includes <mtmc/core/gone.hpp>, which does not exist" core/b.hpp "#include <mtmc/core/gone.hpp>")
check("core/b.hpp: must not include <mtmc/core/a_inl.hpp>: definitions" core/a_inl.hpp ${nothing}
  core/b.hpp "#include <mtmc/core/a_inl.hpp>")
check("the folder odd is not in the table" odd/a.hpp ${nothing})
check("is in a cycle: core/a.hpp -> core/b.hpp -> core/a.hpp" core/0.hpp "#include <mtmc/core/a.hpp>"
  core/a.hpp "#include <mtmc/core/b.hpp>" core/b.hpp "#include <mtmc/core/a.hpp>")
check("is in a cycle: core/a.hpp -> core/b.hpp -> core/a.hpp" core/a.hpp "#include <mtmc/core/b.hpp>" core/b.hpp
  "#include <mtmc/core/b_inl.hpp>" core/b_inl.hpp "#include <mtmc/core/b.hpp>\n#include <mtmc/core/a.hpp>")
check("loop/b.hpp: speaks of CUDA" loop/b.hpp "// starts CUDA")
set(moved "#pragma message(\"mtmc/core/a.hpp is mtmc/task/a.hpp now\")\n#include <mtmc/task/a.hpp>")
check("2 headers keep the layering" core/a.hpp "${moved}" task/a.hpp ${nothing})
check("analysis/b.hpp: includes <mtmc/core/a.hpp> by its old place" core/a.hpp "${moved}" task/a.hpp ${nothing}
  analysis/b.hpp "#include <mtmc/core/a.hpp>")
