# cmake --install: headers, libraries, a CMake package and a pkg-config file. (The tool, its man page and completions: tools/ballast.)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ballast)

# One set of targets for each component, so that a program that asks for one needs what that one needs.
function(ballast_component name)
  install(TARGETS ballast_${name} EXPORT ballast-${name} ${ARGN})
  install(EXPORT ballast-${name} NAMESPACE ballast:: DESTINATION ${package_dir})
endfunction()
ballast_component(core FILE_SET HEADERS FILE_SET parts)
if(NOT BUILD_SHARED_LIBS)
  ballast_component(digest)
endif()
ballast_component(import)
ballast_component(nn FILE_SET HEADERS)
if(BALLAST_BUILD_ONNX)
  ballast_component(onnx FILE_SET HEADERS)
endif()
if(BALLAST_BUILD_TOOLS)
  install(EXPORT ballast-tool NAMESPACE ballast:: DESTINATION ${package_dir})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ballastConfig.cmake.in ${PROJECT_BINARY_DIR}/ballastConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ballastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ballastConfig.cmake ${PROJECT_BINARY_DIR}/ballastConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindLibDeflate.cmake ${CMAKE_CURRENT_LIST_DIR}/FindOneDNN.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindRE2.cmake ${CMAKE_CURRENT_LIST_DIR}/FindZstd.cmake ${CMAKE_CURRENT_LIST_DIR}/ballastFunctions.cmake
        DESTINATION ${package_dir})

# pkg-config: ballast-core loads models from Safetensors files and records, ballast reads and writes all formats, ballast-nn runs models too. Where the libraries are static, what they use is public here.
file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_up ${pc_up})
function(ballast_pkg_config pc_name pc_description pc_requires pc_libs)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/ballast.pc.in ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
if(BUILD_SHARED_LIBS)
  ballast_pkg_config(ballast-core "Models, Safetensors files and records of Ballast" "" "-lballast_core -pthread")
  ballast_pkg_config(ballast "${PROJECT_DESCRIPTION}" "ballast-core = ${PROJECT_VERSION}" "-lballast_import")
  ballast_pkg_config(ballast-nn "Layers and operations of Ballast, on the CPU" "ballast = ${PROJECT_VERSION}" "-lballast_nn")
else()
  ballast_pkg_config(ballast-core "Models, Safetensors files and records of Ballast" "fmt re2 simdjson libzstd" "-lballast_core -pthread")
  ballast_pkg_config(ballast "${PROJECT_DESCRIPTION}" "ballast-core = ${PROJECT_VERSION} fmt libcrypto libdeflate zlib"
                     "-lballast_import -lballast_digest -lballast_core")
  ballast_pkg_config(ballast-nn "Layers and operations of Ballast, on the CPU" "ballast = ${PROJECT_VERSION}" "-lballast_nn -ldnnl -lgomp")
endif()
