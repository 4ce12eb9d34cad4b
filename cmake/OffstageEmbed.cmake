# Writes a source file that holds other files as string literals, for report/page_assets.h:
#   cmake -DOUTPUT=page_assets.cpp -DFILES=a.css,b.js -P OffstageEmbed.cmake
string(REPLACE "," ";" files "${FILES}")
set(source
    "#include \"report/page_assets.h\"\n\n#include <array>\n\nnamespace offstage::report {\nnamespace {\n\n")
set(entries "")
set(number 0)
foreach(file IN LISTS files)
  file(READ "${file}" text)
  # Neither may end the literal, nor a script the element that it will stand in.
  set(banned ")offstage\"")
  if(file MATCHES "[.]js$")
    list(APPEND banned "</script")
  endif()
  foreach(end IN LISTS banned)
    string(FIND "${text}" "${end}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} contains ${end}")
    endif()
  endforeach()
  get_filename_component(name "${file}" NAME)
  string(APPEND source "constexpr std::string_view kText${number} = R\"offstage(${text})offstage\";\n")
  string(APPEND entries "    PageAsset{\"${name}\", kText${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
string(APPEND source "\nconstexpr std::array kAssets{\n${entries}};\n\n}  // namespace\n\n"
       "std::span<const PageAsset> page_assets() { return kAssets; }\n\n}  // namespace offstage::report\n")
file(WRITE "${OUTPUT}" "${source}")
