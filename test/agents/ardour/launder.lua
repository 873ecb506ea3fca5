-- ardour7-lua launder.lua create|work DIRECTORY NAME
-- create: two tracks. work: sound that is there already becomes what claims to be a recording.
local step, directory, name = arg[1], arg[2], arg[3]
local NONE, UI = PBD.GroupControlDisposition.NoGroup, ARDOUR.TransportRequestSource.TRS_UI
local backend = AudioEngine:set_backend("None (Dummy)", "", "")
backend:set_driver("Normal Speed") backend:set_device_name("Pink Noise")
local session = assert(step == "create" and create_session(directory, name, 48000) or step == "work" and load_session(directory, name))
local function named(wanted)
  for route in session:get_tracks():iter() do if route:name() == wanted then return route:to_track() end end
end
if step == "create" then
  for _, each in ipairs { "Sample", "Again" } do
    session:new_audio_track(1, 2, nil, 1, each, ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal, true)
  end
  session:save_state("")
  sleep(1.5)
else
  session:save_state("")
  sleep(1.5)
  local sample, again = named("Sample"), named("Again")
  sample:bounce_range(0, 48000, ARDOUR.InterThreadInfo(), ARDOUR.LuaAPI.nil_proc(), false, "bounced")
  session:save_state("")
  sleep(1.5)
  again:input():nth(0):disconnect_all()
  again:input():nth(0):connect("Sample/audio_out 1")
  again:rec_enable_control():set_value(1, NONE)
  session:maybe_enable_record(false) session:goto_start(false) sleep(0.3) session:request_roll(UI)
  sleep(9)
  session:request_stop(false, false, UI) sleep(1)
  session:save_state("")
  sleep(1.5)
end
close_session()
