# Hash of the interface files, which goes into the name of the prefix where they are installed: r2r generates its
# bindings anew only when AMENT_PREFIX_PATH changes, and stale bindings read messages with the wrong layout.
#
# Included, it sets INTERFACE_HASH. Run as a script (cmake -P), it prints it.
get_filename_component(_package_dir "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)
file(GLOB _interface_files RELATIVE "${_package_dir}"
  "${_package_dir}/msg/*.msg" "${_package_dir}/srv/*.srv" "${_package_dir}/action/*.action")
list(SORT _interface_files)
set(_digest "")
foreach(_file IN LISTS _interface_files)
  file(SHA256 "${_package_dir}/${_file}" _file_digest)
  string(APPEND _digest "${_file} ${_file_digest}\n")
endforeach()
string(SHA256 INTERFACE_HASH "${_digest}")
string(SUBSTRING "${INTERFACE_HASH}" 0 12 INTERFACE_HASH)

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${INTERFACE_HASH}")
endif()
