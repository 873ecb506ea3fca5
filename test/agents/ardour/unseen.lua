-- ardour7-lua unseen.lua DIRECTORY NAME STEP... : a session with a track, and work on it that an agent may not see
local directory, name = arg[1], arg[2]
local NONE, UI = PBD.GroupControlDisposition.NoGroup, ARDOUR.TransportRequestSource.TRS_UI
local backend = AudioEngine:set_backend("None (Dummy)", "", "")
backend:set_driver("Normal Speed") backend:set_device_name("Pink Noise") backend:set_buffer_size(8192)
local session
if ARDOUR.LuaAPI.file_test(directory .. "/" .. name .. ".ardour", ARDOUR.LuaAPI.FileTest.Exists) then
  session = assert(load_session(directory, name))
else
  session = assert(create_session(directory, name, 48000))
  session:new_audio_track(1, 2, nil, 1, "Vox", ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal, true)
  session:save_state("")
  sleep(1.5)
end
local vox
for route in session:get_tracks():iter() do if route:name() == "Vox" then vox = route:to_track() end end

local steps = {}
function steps.save() session:save_state("") sleep(1.5) end
function steps.take()
  vox:rec_enable_control():set_value(1, NONE)
  session:maybe_enable_record(false) session:goto_start(false) sleep(0.3) session:request_roll(UI)
  sleep(9)
  session:request_stop(false, false, UI) sleep(1)
  vox:rec_enable_control():set_value(0, NONE)
end
-- Starts a take and never ends it.
function steps.die()
  vox:rec_enable_control():set_value(1, NONE)
  session:maybe_enable_record(false) session:goto_start(false) sleep(0.3) session:request_roll(UI)
  sleep(9)
  os.exit(3)
end
-- The work goes on under another name.
function steps.switch() session:save_state("other", false, true, false, false, false) sleep(1.5) end
-- Arranges the take otherwise, and does not save it.
function steps.rearrange()
  local playlist = vox:playlist()
  local first
  for region in playlist:region_list():iter() do first = region end
  session:begin_reversible_command("edit") playlist:to_stateful():clear_changes()
  playlist:add_region(ARDOUR.RegionFactory.clone_region(first, true, false), Temporal.timepos_t(24000), 1, false)
  session:add_stateful_diff_command(playlist:to_statefuldestructible()) session:commit_reversible_command(nil)
end
function steps.trim() vox:trim():gain_control():set_value(0.5, NONE) end
function steps.synth()
  local synth = ARDOUR.LuaAPI.new_plugin_info("https://community.ardour.org/node/7596", ARDOUR.PluginType.LV2)
  session:new_midi_track(ARDOUR.ChanCount(ARDOUR.DataType.midi(), 1), ARDOUR.ChanCount(ARDOUR.DataType.audio(), 2), false, synth, nil, nil, 1, "Keys", ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal, true)
end
function steps.reverb()
  local reverb = ARDOUR.LuaAPI.new_plugin(session, "urn:ardour:a-reverb", ARDOUR.PluginType.LV2, "")
  assert(not reverb:isnil())
  vox:add_processor_by_index(reverb, 0, nil, true)
end
function steps.export()
  local export = session:simple_export()
  export:set_preset("75969a1c-3133-4694-864b-a1fa50e43348")
  export:set_name("mix") export:set_folder(directory .. "/export")
  assert(export:run_export())
end
for step = 3, #arg do steps[arg[step]]() end
collectgarbage()
close_session()
