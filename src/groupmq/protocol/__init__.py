"""What goes over the wire: keys, function calls and their answers, and the Lua side itself."""
