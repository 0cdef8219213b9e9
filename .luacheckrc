-- Settings for the expanded scripts; `make check` expands and lints them with tools/lint_lua.py.
std = "lua51"
read_globals = { "redis", "cjson", "cmsgpack", "struct", "bit", "KEYS", "ARGV" }
max_line_length = 120
-- All files share one scope, and a file need not know the names of those that it does not use.
ignore = { "431" }
