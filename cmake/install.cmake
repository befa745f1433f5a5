include(CMakePackageConfigHelpers)

install(TARGETS ballast_core ballast_import ballast_nn EXPORT ballastTargets FILE_SET HEADERS FILE_SET parts)
install(EXPORT ballastTargets NAMESPACE ballast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ballast)
