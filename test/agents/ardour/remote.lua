-- ardour7-lua remote.lua UI_SCRIPTS SPOOL
-- Writes the file from which Ardour's window takes its hooks, with one that runs the Lua files of a folder in turn.
local out, spool = arg[1], arg[2]

local source = [[
ardour { ["type"] = "EditorHook", name = "remote" }
function factory ()
  local turn = 1
  return function ()
    local path = "SPOOL/" .. turn
    local file = io.open (path .. ".lua")
    if not file then return end
    local text = file:read ("*a") file:close ()
    turn = turn + 1
    local chunk, problem = load (text, "remote")
    local done, result
    if chunk then done, result = pcall (chunk) else done, result = false, problem end
    local answer = io.open (path .. ".tmp", "w")
    answer:write (done and "done " or "failed ", tostring (result)) answer:close ()
    os.rename (path .. ".tmp", path .. ".out")
  end
end
]]
source = source:gsub("SPOOL", spool)

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local function base64(text)
  local encoded = {}
  for at = 1, #text, 3 do
    local one, two, three = text:byte(at, at + 2)
    local bits = one << 16 | (two or 0) << 8 | (three or 0)
    for place = 0, 3 do
      local index = bits >> (18 - 6 * place) & 63
      local padded = place == 2 and not two or place == 3 and not three
      encoded[#encoded + 1] = padded and "=" or ALPHABET:sub(index + 1, index + 1)
    end
  end
  return table.concat(encoded)
end

function ardour() end
assert(load(source))()
local state = string.format("s = {} s[\"n\"] = %q s[\"s\"] = %q s[\"f\"] = %q s[\"a\"] = {} ", "remote", source, string.dump(factory, true))
-- Ten times a second: the last but one of 49 signals, which are written from the last to the first.
local signals = "01" .. ("0"):rep(47)
local file = assert(io.open(out, "w"))
file:write('<?xml version="1.0" encoding="UTF-8"?>\n<UIScripts>\n  <ActionScript lua="Lua 5.3">', base64("scripts = {} "), '</ActionScript>\n  <ActionHooks>\n')
file:write('    <LuaCallback lua="Lua 5.3" id="900001" name="remote" signals="', signals, '">', base64(state), '</LuaCallback>\n')
file:write("  </ActionHooks>\n</UIScripts>\n")
file:close()
