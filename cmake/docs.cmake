# The documents and the reference of the public headers as static pages: cmake --build --preset release --target docs (build/docs/index.html).
find_program(BALLAST_DOXYGEN doxygen)
mark_as_advanced(BALLAST_DOXYGEN)
if(BALLAST_DOXYGEN)
  add_custom_target(docs COMMAND ${PROJECT_SOURCE_DIR}/scripts/docs ${PROJECT_SOURCE_DIR}/build/docs USES_TERMINAL VERBATIM)
endif()
