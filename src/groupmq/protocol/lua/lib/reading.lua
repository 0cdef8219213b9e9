--[[ The beginning of a call that only reads. Returns an error reply if the call must end at once, else nil. ]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/call"
--- @include "lib/meta"

local function begin_reads(given_keys, argv)
  args.begin(argv)
  keys.begin(given_keys[1])
  clock.begin()
  call = { seen = { [K.meta] = true }, loaded = {}, touched = {} }
  return meta.begin(argv[3])
end
