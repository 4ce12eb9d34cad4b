#include "cli/table.h"

#include <catch2/catch.hpp>

using offstage::cli::Align;
using offstage::cli::Table;

TEST_CASE("a table sets its first column left and the others right", "[cli][unit]") {
  Table table({"pool", "peak"});
  table.add({"gpu0", "1 GiB"});
  table.add({"host", "100 GiB"});
  // Columns of 4 and 7 letters, two spaces before each.
  CHECK(table.text() ==
        "  pool     peak\n"
        "  gpu0    1 GiB\n"
        "  host  100 GiB\n");
}

TEST_CASE("a table's lines do not end in spaces", "[cli][unit]") {
  Table table({"what", "why"}, {Align::left, Align::left});
  table.add({"a", "because"});
  table.add({"b", ""});
  CHECK(table.text() ==
        "  what  why\n"
        "  a     because\n"
        "  b\n");
}

TEST_CASE("a table without rows is empty", "[cli][unit]") {
  Table table({"what"});
  CHECK(table.empty());
  table.add({"a"});
  CHECK_FALSE(table.empty());
}
