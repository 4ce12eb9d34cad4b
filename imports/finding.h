#pragma once

#include <string>
#include <string_view>
#include <vector>

// What became of each key of a user's file. An importer explains itself through these: nothing in a
// file is read, left aside or guessed without one.
namespace offstage::imports {

struct Finding {
  enum class Kind {
    used,           // became a knob; the text says which
    ignored,        // changes neither memory nor speed, or the system itself ignores it
    left_open,      // `auto`, or not in the file: the text says what is taken instead, and whose
                    // default that is
    deprecated,     // an old spelling; the text names the new one, and what it became
    misspelt,       // a fault: no such key; the text names the nearest
    contradictory,  // a fault: against another key, or against the machine or the model
    impossible,     // a fault: a value the system would refuse, or that can't be planned
  };

  Kind kind = Kind::used;
  std::string key;    // dotted path, or the flag as written
  int line = 0;       // of the value, from 1; 0 when the file doesn't have the key
  int column = 0;     // likewise
  std::string value;  // empty when the file doesn't have the key
  std::string text;
};

// A file with such a finding would not start, or not do what it says.
bool is_fault(Finding::Kind kind);

std::string_view to_string(Finding::Kind kind);

}  // namespace offstage::imports
