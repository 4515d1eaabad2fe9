# Installs the project built in BUILD to FIRST and then moves it to THEN, as an unpacked archive is.
file(REMOVE_RECURSE ${FIRST} ${THEN})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FIRST} COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${FIRST} ${THEN})
if(NOT EXISTS ${THEN}/share/licenses/mtmc/LICENSE)
  message(FATAL_ERROR "The licence is not installed.")
endif()
