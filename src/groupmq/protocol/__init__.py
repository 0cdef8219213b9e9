"""The protocol with the server: keys, function calls and their answers, and the Lua side itself."""
