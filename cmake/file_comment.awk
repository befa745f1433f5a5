# The words a header opens with, as Doxygen wants them to see the documentation of a file in them.
NR == 1 && /SPDX/ { print "/// @file"; next }
!begun && /^\/\/( |$)/ { sub(/^\/\//, "///"); print; next }
{ begun = 1; print }
