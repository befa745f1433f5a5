# Debian's dnnl-config.cmake asks for OpenCL's development files, which nothing here needs. libgomp is the OpenMP runtime that library was built
# with: ours must be the same one, so that both share one team of threads.
find_path(OneDNN_INCLUDE_DIR dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
find_file(OneDNN_VERSION_FILE oneapi/dnnl/dnnl_version.h HINTS ${OneDNN_INCLUDE_DIR})
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.so OUTPUT_VARIABLE OneDNN_GOMP_HINT OUTPUT_STRIP_TRAILING_WHITESPACE)
get_filename_component(OneDNN_GOMP_FOLDER "${OneDNN_GOMP_HINT}" DIRECTORY)
find_library(OneDNN_GOMP_LIBRARY NAMES gomp libgomp.so.1 HINTS ${OneDNN_GOMP_FOLDER})
if(OneDNN_VERSION_FILE)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${OneDNN_VERSION_FILE} line REGEX "DNNL_VERSION_${part} +[0-9]+")
    string(REGEX MATCH "[0-9]+" OneDNN_VERSION_${part} "${line}")
  endforeach()
  set(OneDNN_VERSION ${OneDNN_VERSION_MAJOR}.${OneDNN_VERSION_MINOR}.${OneDNN_VERSION_PATCH})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR OneDNN_GOMP_LIBRARY VERSION_VAR OneDNN_VERSION
                                  HANDLE_VERSION_RANGE)
if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES IMPORTED_LOCATION ${OneDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR}
                        INTERFACE_LINK_LIBRARIES ${OneDNN_GOMP_LIBRARY})
endif()
