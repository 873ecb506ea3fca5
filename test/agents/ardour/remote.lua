-- ardour7-lua remote.lua UI_SCRIPTS SPOOL [HOOK]
-- Writes the file from which Ardour's window takes its hooks, as its Script Manager does: one that runs the Lua files of
-- a folder in turn, and a script with signals of its own.
local out, spool, hook = arg[1], arg[2], arg[3]

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

-- Places of the signals among 49, which are written from the last to the first.
local PLACES = { TransportStateChange = 14, Located = 31, LuaTimerDS = 47 }
local function bits(names)
  local digits = {}
  for place = 48, 0, -1 do
    local wanted = "0"
    for _, name in ipairs(names) do if PLACES[name] == place then wanted = "1" end end
    digits[#digits + 1] = wanted
  end
  return table.concat(digits)
end

function ardour() end
local function callback(id, name, text, names)
  assert(load(text))()
  local state = string.format("s = {} s[\"n\"] = %q s[\"s\"] = %q s[\"f\"] = %q s[\"a\"] = {} ", name, text, string.dump(factory, true))
  return string.format('    <LuaCallback lua="Lua 5.3" id="%d" name="%s" signals="%s">%s</LuaCallback>\n', id, name, bits(names), base64(state))
end
local file = assert(io.open(out, "w"))
file:write('<?xml version="1.0" encoding="UTF-8"?>\n<UIScripts>\n  <ActionScript lua="Lua 5.3">', base64("scripts = {} "), '</ActionScript>\n  <ActionHooks>\n')
-- Ten times a second.
file:write(callback(900001, "remote", source, { "LuaTimerDS" }))
if hook then
  local script = assert(io.open(hook))
  local text = script:read("*a") script:close()
  -- The script names its signals as Ardour does.
  local names = {}
  for name in text:gmatch("%[LuaSignal%.(%w+)%] = true") do names[#names + 1] = name end
  file:write(callback(900002, "witness", text, names))
end
file:write("  </ActionHooks>\n</UIScripts>\n")
file:close()
