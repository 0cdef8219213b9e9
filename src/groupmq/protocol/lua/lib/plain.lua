--[[ The beginning of a call that does not need the queue to exist. ]]
--- @include "lib/args"
--- @include "lib/keys"

local function begin_plain(given_keys, argv)
  args.begin(argv)
  keys.begin(given_keys[1])
end
