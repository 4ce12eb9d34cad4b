# offstage::warnings: every target of ours links it PRIVATE. It carries the language level too, so
# that no target can forget it.
add_library(offstage_warnings INTERFACE)
add_library(offstage::warnings ALIAS offstage_warnings)
target_compile_features(offstage_warnings INTERFACE cxx_std_20)
target_include_directories(offstage_warnings INTERFACE "${PROJECT_SOURCE_DIR}")

# The three folders that count bytes and seconds also refuse silent conversions. The list stands
# here and not in the folders, so that one line shows who is held to what.
set(offstage_strict offstage_platform offstage_workloads offstage_scheduler)
target_compile_options(
  offstage_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Werror
            "$<$<IN_LIST:$<TARGET_PROPERTY:NAME>,${offstage_strict}>:-Wconversion>")

# With sanitizers at -Og, g++ 12 takes members of std::optional and std::regex for uninitialised. The
# optimised build, which sees more, keeps the warning.
target_compile_options(offstage_warnings INTERFACE "$<$<CONFIG:Debug>:-Wno-maybe-uninitialized>")
