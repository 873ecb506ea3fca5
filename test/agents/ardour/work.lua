-- ardour7-lua work.lua DIRECTORY NAME STEP... : a session with a track, and the steps of work on it
local directory, name = arg[1], arg[2]
local NONE, UI = PBD.GroupControlDisposition.NoGroup, ARDOUR.TransportRequestSource.TRS_UI
local backend = AudioEngine:set_backend("None (Dummy)", "", "")
backend:set_driver("Normal Speed") backend:set_device_name("Pink Noise") backend:set_buffer_size(8192)
local session
if ARDOUR.LuaAPI.file_test(directory .. "/" .. name .. ".ardour", ARDOUR.LuaAPI.FileTest.Exists) then
  session = assert(load_session(directory, name))
else
  session = assert(create_session(directory, name, 48000))
  -- The agent first reads the session without tracks.
  sleep(1.5)
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
-- Two notes in a region that was recorded, and two that are entered.
function steps.notes()
  local keys
  for route in session:get_tracks():iter() do if route:name() == "Keys" then keys = route:to_track() end end
  keys:input():nth(0):connect("x-virtual-keyboard")
  local port = AudioEngine:get_port_by_name("x-virtual-keyboard"):to_asyncmidiport()
  local function midi(...)
    local parser = ARDOUR.RawMidiParser()
    for _, byte in ipairs { ... } do
      if parser:process_byte(byte) then port:write(parser:midi_buffer(), parser:buffer_size(), 0) end
    end
  end
  keys:rec_enable_control():set_value(1, NONE)
  session:maybe_enable_record(false) session:goto_start(false) sleep(0.3) session:request_roll(UI)
  sleep(1) midi(0x90, 60, 100) sleep(0.5) midi(0x80, 60, 0) midi(0x90, 64, 90) sleep(0.5) midi(0x80, 64, 0) sleep(1)
  session:request_stop(false, false, UI) sleep(1)
  keys:rec_enable_control():set_value(0, NONE)
  steps.save()
  for region in keys:playlist():region_list():iter() do
    local model = region:to_midiregion():midi_source(0):model()
    local notes = model:new_note_diff_command("notes")
    notes:add(ARDOUR.LuaAPI.new_noteptr(0, Temporal.Beats(0, 480), Temporal.Beats(1, 0), 72, 101))
    notes:add(ARDOUR.LuaAPI.new_noteptr(0, Temporal.Beats(2, 0), Temporal.Beats(0, 960), 76, 64))
    model:apply_diff_command_as_commit(session, notes)
  end
end
-- Keeps the start of the last take, above the take before it.
function steps.comp()
  local playlist = vox:playlist()
  local last
  for region in playlist:region_list():iter() do last = region end
  session:begin_reversible_command("comp") last:to_stateful():clear_changes()
  last:trim_end(Temporal.timepos_t(96000))
  session:add_stateful_diff_command(last:to_statefuldestructible()) session:commit_reversible_command(nil)
end
function steps.ramp()
  local map = Temporal.TempoMap.fetch_writable()
  map:set_tempo(Temporal.Tempo(90, 120, 4), Temporal.timepos_t(0))
  map:set_tempo(Temporal.Tempo(120, 120, 4), Temporal.timepos_t(240000))
  Temporal.TempoMap.update(map)
end
function steps.mix()
  vox:gain_control():set_value(0.7, NONE) vox:pan_azimuth_control():set_value(0.25, NONE)
end
function steps.automate()
  local gains = vox:gain_control():alist()
  session:begin_reversible_command("ramp")
  local former = gains:get_state()
  gains:add(Temporal.timepos_t(0), 0.1, false, true) gains:add(Temporal.timepos_t(48000), 0.8, false, true)
  session:add_command(gains:memento_command(former, gains:get_state())) session:commit_reversible_command(nil)
  vox:gain_control():set_automation_state(ARDOUR.AutoState.Play)
end
function steps.bounce()
  vox:bounce_range(0, 96000, ARDOUR.InterThreadInfo(), ARDOUR.LuaAPI.nil_proc(), false, "bounced")
end
function steps.equalise()
  local eq = ARDOUR.LuaAPI.new_plugin(session, "urn:ardour:a-eq", ARDOUR.PluginType.LV2, "")
  assert(not eq:isnil())
  vox:add_processor_by_index(eq, 0, nil, true)
end
local function export(title)
  local export = session:simple_export()
  export:set_preset("75969a1c-3133-4694-864b-a1fa50e43348")
  export:set_name(title) export:set_folder(directory .. "/export")
  assert(export:run_export())
  -- The header of the file is written when the export is collected.
  export = nil
  collectgarbage()
end
function steps.export() export("mix") end
function steps.exportStem() export("stem") end
for step = 3, #arg do steps[arg[step]]() end
collectgarbage()
close_session()
