# The node: cargo against the interfaces that this build generates.
include(${CMAKE_CURRENT_LIST_DIR}/interface_hash.cmake)

# r2r refuses as well, but in the middle of cargo's log.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/distributions.txt _buildable REGEX "^[a-z]+ +yes ")
list(TRANSFORM _buildable REPLACE " .*" "")
if(NOT "$ENV{ROS_DISTRO}" IN_LIST _buildable)
  list(JOIN _buildable ", " _buildable)
  message(FATAL_ERROR "The node cannot be built for ROS 2 '$ENV{ROS_DISTRO}': source the setup.bash of one of ${_buildable}.")
endif()

find_program(CARGO cargo HINTS "$ENV{HOME}/.cargo/bin" REQUIRED)
set(_cargo_target "${GR00T_BLACKHOLE_CARGO_TARGET_DIR}")
if(NOT _cargo_target)
  set(_cargo_target "${CMAKE_CURRENT_BINARY_DIR}/cargo")
endif()

# Prefixes of the environment for cargo. One that holds nothing but this package is an earlier build of it, whose
# interfaces may be older; unless its name carries the hash of just these interfaces, it must not be seen.
set(_prefixes "")
set(_interfaces "")
string(REPLACE ":" ";" _sourced "$ENV{AMENT_PREFIX_PATH}")
foreach(_prefix IN LISTS _sourced)
  file(GLOB _packages RELATIVE "${_prefix}/share/ament_index/resource_index/packages"
    "${_prefix}/share/ament_index/resource_index/packages/*")
  if(NOT _packages STREQUAL PROJECT_NAME)
    list(APPEND _prefixes "${_prefix}")
  elseif(_prefix MATCHES "/interfaces-${INTERFACE_HASH}$")
    set(_interfaces "${_prefix}")
  endif()
endforeach()

if(_interfaces)
  set(_install_interfaces "")
else()
  # Install rules that name no component are those of the interfaces; the node has its own.
  set(_interfaces "${CMAKE_CURRENT_BINARY_DIR}/interfaces-${INTERFACE_HASH}")
  set(_install_interfaces
    COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${_interfaces} -DCMAKE_INSTALL_COMPONENT=Unspecified
      -P ${CMAKE_CURRENT_BINARY_DIR}/cmake_install.cmake)
endif()
list(PREPEND _prefixes "${_interfaces}")
list(JOIN _prefixes ":" _prefixes)

get_property(_interface_targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
list(REMOVE_ITEM _interface_targets uninstall ${PROJECT_NAME}_uninstall)
add_custom_target(${PROJECT_NAME}_node ALL
  ${_install_interfaces}
  COMMAND ${CMAKE_COMMAND} -E env "AMENT_PREFIX_PATH=${_prefixes}" "CMAKE_PREFIX_PATH=${_prefixes}"
    ${CARGO} build --release --locked --bin gr00t_blackhole --target-dir "${_cargo_target}"
  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
  COMMENT "cargo build --release"
  USES_TERMINAL VERBATIM
)
add_dependencies(${PROJECT_NAME}_node ${_interface_targets})

install(PROGRAMS "${_cargo_target}/release/gr00t_blackhole" DESTINATION lib/${PROJECT_NAME} COMPONENT node)
