--[[ ARGV[1] is one msgpack map of named arguments; ARGV[2], where a script takes it, is joined opaque bytes. ]]
local A = cmsgpack.unpack(ARGV[1])
