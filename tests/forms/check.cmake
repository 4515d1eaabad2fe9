# Files that do not fit together do not link, and what the linker says tells what to do. COMPILER, INCLUDE; WORK is a
# folder to write into.
cmake_minimum_required(VERSION 3.25)

set(violations "")
file(MAKE_DIRECTORY ${WORK}/other_version/mtmc)
file(READ ${INCLUDE}/mtmc/version.hpp text)
string(REGEX REPLACE "(MTMC_VERSION_PATCH) [0-9]+" "\\1 77" text "${text}")
file(WRITE ${WORK}/other_version/mtmc/version.hpp "${text}")

# A header whose nouns a host hands from file to file.
set(noun "#include <mtmc/core/kernel.hpp>\n")
set(takes "${noun}void take(const mtmc::Kernel&) {}\n")
set(gives "${noun}void take(const mtmc::Kernel&);\nint main() { take({}); }\n")
set(implementation "#include <mtmc/version_inl.hpp>\n")
set(separate -DMTMC_SEPARATE_COMPILATION)

# compile(NAME TEXT OPTIONS...) puts an object into ${NAME}.
function(compile name text)
  set(source ${WORK}/${name}.cpp)
  file(WRITE ${source} "${text}")
  execute_process(COMMAND ${COMPILER} -std=c++20 ${ARGN} -I${INCLUDE} -c ${source} -o ${WORK}/${name}.o
    RESULT_VARIABLE failed ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${text}\ndoes not compile:\n${output}")
  endif()
  set(${name} ${WORK}/${name}.o PARENT_SCOPE)
endfunction()
# expect(SENTENCE OBJECTS...): linking fails and says so; with an empty sentence it works.
function(expect sentence)
  execute_process(COMMAND ${COMPILER} ${ARGN} -o ${WORK}/program RESULT_VARIABLE failed ERROR_VARIABLE output)
  if((sentence STREQUAL "" AND failed) OR (NOT sentence STREQUAL "" AND (NOT failed OR NOT output MATCHES "${sentence}")))
    list(JOIN ARGN " " objects)
    string(APPEND violations "\n\n${objects}: expected \"${sentence}\"; the linker said:\n${output}")
    set(violations "${violations}" PARENT_SCOPE)
  endif()
endfunction()

compile(gives_header_only "${gives}")
compile(takes_header_only "${takes}")
compile(gives_separate "${gives}" ${separate})
compile(takes_separate "${takes}" ${separate})
compile(takes_old_name "${takes}" -DMTMC_COMPILED)
compile(takes_other_version "${takes}" -I${WORK}/other_version)
compile(first_implementation "${implementation}" ${separate})
compile(second_implementation "${implementation}" ${separate})

set(remedy "exactly_one_source_file_includes_mtmc_implementation_hpp_or_link_mtmc_compiled")
expect("" ${gives_header_only} ${takes_header_only})
expect("" ${gives_separate} ${takes_separate} ${first_implementation})
expect("" ${gives_separate} ${takes_old_name} ${first_implementation})
expect("undefined [^\n]*${remedy}" ${gives_separate} ${takes_separate})
expect("multiple [^\n]*${remedy}" ${gives_separate} ${takes_separate} ${first_implementation} ${second_implementation})
expect("undefined [^\n]*_separate::Kernel" ${gives_separate} ${takes_header_only} ${first_implementation})
expect("undefined [^\n]*_header_only::Kernel" ${gives_header_only} ${takes_separate} ${first_implementation})
expect("undefined [^\n]*_header_only::Kernel" ${gives_header_only} ${takes_other_version})

if(violations)
  message(FATAL_ERROR "What does not fit together must not link, and the linker must say why.${violations}")
endif()
