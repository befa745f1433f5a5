# Weights at build time.
#
#   ballast_convert(TARGET app INPUT model.pt OUTPUT model.record [DTYPE half] [QUANTIZE int8] [ROOT key] [OPTIONS …])
#       makes OUTPUT (in the binary folder) whenever INPUT (in the source folder) changes, before `app` is built. The format follows
#       OUTPUT's extension. OPTIONS are further words for `ballast convert`. Values that do not fit the precision stop the build.
#
#   ballast_embed(TARGET app INPUT model.pt SYMBOL weights [DTYPE half] [QUANTIZE int8] [ROOT key] [OPTIONS …])
#       links the weights into `app`, which then says
#           #include "weights.h"
#           weights::load(net);                  // no file, no copy
#           weights::values<"fc.weight">();      // std::span<const float, 7840>; a wrong name does not compile

# Uses its caller's arg_DTYPE, arg_QUANTIZE, arg_ROOT and arg_OPTIONS.
function(_ballast_convert_command input output)
  set(words)
  if(DEFINED arg_DTYPE)
    list(APPEND words --dtype ${arg_DTYPE})
  endif()
  if(DEFINED arg_QUANTIZE)
    list(APPEND words --quantize ${arg_QUANTIZE})
  endif()
  if(DEFINED arg_ROOT)
    list(APPEND words --root ${arg_ROOT})
  endif()
  cmake_path(GET output PARENT_PATH folder)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND $<TARGET_FILE:ballast::tool> convert ${input} ${output} --force --quiet ${words} ${arg_OPTIONS}
    DEPENDS ${input} $<TARGET_FILE:ballast::tool>
    COMMENT "Converting ${input}"
    VERBATIM)
endfunction()

function(_ballast_need command)
  if(NOT TARGET ballast::tool)
    message(FATAL_ERROR "${command}: Ballast's tool is not built here (BALLAST_BUILD_TOOLS=ON)")
  endif()
  foreach(word IN LISTS ARGN)
    if(NOT DEFINED arg_${word})
      message(FATAL_ERROR "${command}: ${word} is missing")
    endif()
  endforeach()
  if(NOT TARGET ${arg_TARGET})
    message(FATAL_ERROR "${command}: there is no target ${arg_TARGET}")
  endif()
endfunction()

function(ballast_convert)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;INPUT;OUTPUT;DTYPE;QUANTIZE;ROOT" "OPTIONS")
  _ballast_need(ballast_convert TARGET INPUT OUTPUT)
  cmake_path(ABSOLUTE_PATH arg_INPUT BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE input)
  cmake_path(ABSOLUTE_PATH arg_OUTPUT BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} NORMALIZE OUTPUT_VARIABLE output)
  _ballast_convert_command(${input} ${output})
  target_sources(${arg_TARGET} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

function(ballast_embed)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;INPUT;SYMBOL;DTYPE;QUANTIZE;ROOT" "OPTIONS")
  _ballast_need(ballast_embed TARGET INPUT SYMBOL)
  cmake_path(ABSOLUTE_PATH arg_INPUT BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE input)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ballast_embed/${arg_TARGET})
  set(record ${folder}/${arg_SYMBOL}.record)
  set(header ${folder}/${arg_SYMBOL}.h)
  set(source ${folder}/${arg_SYMBOL}.cpp)
  _ballast_convert_command(${input} ${record})
  add_custom_command(
    OUTPUT ${header} ${source}
    COMMAND $<TARGET_FILE:ballast::tool> embed ${record} --symbol ${arg_SYMBOL} > ${header}
    COMMAND $<TARGET_FILE:ballast::tool> embed ${record} --symbol ${arg_SYMBOL} --source > ${source}
    DEPENDS ${record} $<TARGET_FILE:ballast::tool>
    COMMENT "Embedding ${arg_SYMBOL}"
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${record})
  target_sources(${arg_TARGET} PRIVATE ${header} ${source})
  target_include_directories(${arg_TARGET} PRIVATE ${folder})
endfunction()
