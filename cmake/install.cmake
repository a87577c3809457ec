# What `cmake --install` puts under the prefix, in folders that install_folders.cmake has made:
#   bin/thalweg                          the command (tools/thalweg/ installs it)
#   lib/libthalweg-*.so                  the preload objects (src/interpose/ installs them); `thalweg run` finds them
#                                        at ../lib from its own place, in the build tree as under a prefix
#   include/thalweg/thalweg.h            the only public header
#   lib/pkgconfig, lib/cmake/thalweg     for programs that observe or steer (they include a header, link nothing)
include(CMakePackageConfigHelpers)

install(FILES include/thalweg/thalweg.h DESTINATION include/thalweg)
# What `thalweg bench plot` draws with.
install(FILES bench/plot.py DESTINATION share/thalweg/bench)
install(FILES sim/plot.py DESTINATION share/thalweg/sim)
install(FILES README.md LICENSE CHANGELOG.md DESTINATION share/doc/thalweg)

configure_file(cmake/thalweg.pc.in ${PROJECT_BINARY_DIR}/thalweg.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/thalweg.pc DESTINATION lib/pkgconfig)

configure_package_config_file(cmake/thalweg-config.cmake.in ${PROJECT_BINARY_DIR}/thalweg-config.cmake
                              INSTALL_DESTINATION lib/cmake/thalweg)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/thalweg-config-version.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/thalweg-config.cmake ${PROJECT_BINARY_DIR}/thalweg-config-version.cmake
        DESTINATION lib/cmake/thalweg)
