// The one main of all test programs; it is slow to compile, so it stands alone.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
