/** The Ardour script that records what session files do not contain: playback start, stop and locate. */

/** The file in the session directory that the script appends to. */
export const HOOK_FILE = 'takemark-hook.log';

/** The size in bytes above which the script restarts its file, after about three days of beats. */
const MOST_BYTES = 4_194_304;

/**
 * The Lua code of an `EditorHook` for Ardour 7. It writes lines of the form `<number> <microseconds> <word>
 * <sample> <rate>`. The microseconds are of the machine's monotonic clock. The word is `beat` (once per
 * second), `roll`, `stop` or `locate`. The script reads no names and changes nothing.
 */
export const HOOK_SCRIPT = `ardour {
  ["type"] = "EditorHook",
  name = "Takemark witness",
  author = "Takemark",
  description = [[Records playback start, stop and locate in the session directory, for takemark capture ardour --hook.]]
}

function signals ()
  return LuaSignal.Set ():add ({
    [LuaSignal.TransportStateChange] = true,
    [LuaSignal.Located] = true,
    [LuaSignal.LuaTimerDS] = true
  })
end

function factory ()
  local number, size, beat, rolling = 0, 0, 0, false
  return function (signal)
    if not Session then return end
    local now = ARDOUR.LuaAPI.monotonic_time ()
    local function note (word)
      local path = Session:path () .. "/${HOOK_FILE}"
      local file = io.open (path, size > ${MOST_BYTES} and "w" or "a")
      if not file then return end
      if size > ${MOST_BYTES} then size = 0 end
      number = number + 1
      local line = string.format ("%d %d %s %d %d\\n", number, now, word, Session:transport_sample (), Session:nominal_sample_rate ())
      size = size + #line
      file:write (line)
      file:close ()
    end
    local is_rolling = Session:transport_rolling ()
    if signal == LuaSignal.Located and not is_rolling then note ("locate") end
    if is_rolling ~= rolling then
      rolling = is_rolling
      note (is_rolling and "roll" or "stop")
    end
    if now - beat >= 1000000 then
      beat = now
      note ("beat")
    end
  end
end
`;
