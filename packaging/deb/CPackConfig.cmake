# How packaging/build_deb.sh packs its staging folder.
set(CPACK_GENERATOR DEB)
set(CPACK_INSTALLED_DIRECTORIES "$ENV{STAGE};/")
set(CPACK_PACKAGING_INSTALL_PREFIX "/")
set(CPACK_PACKAGE_NAME "ros-$ENV{ROS_DISTRO}-gr00t-blackhole")
set(CPACK_PACKAGE_VERSION "$ENV{VERSION}")
set(CPACK_PACKAGE_VENDOR "gr00t_blackhole")
set(CPACK_PACKAGE_CONTACT "gr00t_blackhole maintainers <maintainers@gr00t-blackhole.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "NVIDIA GR00T vision-language-action policies as a ROS 2 node and an HTTP server")
set(CPACK_PACKAGE_DESCRIPTION
  "Turns camera and joint-state topics into action chunks of GR00T N1.5, N1.6 and N1.7. No weights are included.")
set(CPACK_PACKAGE_FILE_NAME "${CPACK_PACKAGE_NAME}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION "misc")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "$ENV{DEPENDS}")
# Libraries of the distribution; those of ROS 2 tell no versions and are named above.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "$ENV{CONTROL}/conffiles;$ENV{CONTROL}/postinst;$ENV{CONTROL}/prerm;$ENV{CONTROL}/postrm")
