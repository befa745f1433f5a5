include(CMakePackageConfigHelpers)

install(TARGETS ballast_core ballast_import EXPORT ballastTargets FILE_SET HEADERS)
install(EXPORT ballastTargets NAMESPACE ballast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ballast)
