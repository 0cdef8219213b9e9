--[[ A list without duplicates. ]]
local distinct
--- @private

-- Returns an empty list, and a function that appends an item to it unless the list has it.
function distinct()
  local list, seen = {}, {}
  return list, function(item)
    if not seen[item] then
      seen[item] = true
      list[#list + 1] = item
    end
  end
end
