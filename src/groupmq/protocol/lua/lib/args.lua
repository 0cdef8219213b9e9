--[[ The input of a call: `A`, a msgpack map of named arguments, and `blob`, raw bytes, '' if there are none. The later
arguments are read by lib/reading.lua (the revision of the settings) and lib/kept_replies.lua. ]]
local args = {}
local A, blob
--- @private

function args.begin(argv)
  A, blob = cmsgpack.unpack(argv[1]), argv[2] or ''
end
