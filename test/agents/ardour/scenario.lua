-- A session from its first track to its export, without a window: ardour7-lua scenario.lua DIRECTORY NAME TRUTH
-- Each act is written to TRUTH as it is done, so that a trace can be held against it.
local directory, name, truth = arg[1], arg[2], assert(io.open(arg[3], "w"))
local NONE, UI = PBD.GroupControlDisposition.NoGroup, ARDOUR.TransportRequestSource.TRS_UI
local LAST, NORMAL = ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal
local at = Temporal.timepos_t

local function act(op, values)
  local members = { '"op":"' .. op .. '"' }
  for key, value in pairs(values or {}) do members[#members + 1] = string.format('"%s":%s', key, value) end
  truth:write("{" .. table.concat(members, ",") .. "}\n") truth:flush()
  sleep(0.05)
end

local backend = AudioEngine:set_backend("None (Dummy)", "", "")
-- In long buffers the device loses less of the time.
backend:set_driver("Normal Speed") backend:set_device_name("Pink Noise") backend:set_buffer_size(8192)
ARDOUR.config():set_history_depth(5000) ARDOUR.config():set_saved_history_depth(5000)
local session = assert(create_session(directory, name, 48000))
-- The agent first reads the session as it was found, without tracks.
sleep(1.5)
local function save() sleep(0.1) session:save_state("") act("session.save") sleep(1.3) end

local function tempo(bpm, beats)
  local map = Temporal.TempoMap.fetch_writable()
  map:set_tempo(Temporal.Tempo(bpm, bpm, 4), at(0))
  if beats then map:set_meter(Temporal.Meter(beats, 4), at(0)) end
  Temporal.TempoMap.update(map)
  act("tempo.set", { bpm = bpm })
end
tempo(96, 3)

local vox, keys
for track in session:new_audio_track(1, 2, nil, 1, "Vox", LAST, NORMAL, true):iter() do vox = track:to_track() end
act("track.add", { kind = '"audio"' })
local synth = ARDOUR.LuaAPI.new_plugin_info("https://community.ardour.org/node/7596", ARDOUR.PluginType.LV2)
local function channels(kind, count) return ARDOUR.ChanCount(kind, count) end
for track in session:new_midi_track(channels(ARDOUR.DataType.midi(), 1), channels(ARDOUR.DataType.audio(), 2), false, synth, nil, nil, 1, "Keys", LAST, NORMAL, true):iter() do keys = track:to_track() end
keys:input():nth(0):connect("x-virtual-keyboard")
act("track.add", { kind = '"midi"' })
save()

-- Noise of the dummy device on one track, two notes of the virtual keyboard on the other.
local port = AudioEngine:get_port_by_name("x-virtual-keyboard"):to_asyncmidiport()
local function midi(...)
  local parser = ARDOUR.RawMidiParser()
  for _, byte in ipairs { ... } do
    if parser:process_byte(byte) then port:write(parser:midi_buffer(), parser:buffer_size(), 0) end
  end
end
vox:rec_enable_control():set_value(1, NONE) keys:rec_enable_control():set_value(1, NONE)
session:maybe_enable_record(false) session:request_roll(UI)
act("record.start")
sleep(1) midi(0x90, 60, 100) sleep(0.5) midi(0x80, 60, 0) midi(0x90, 64, 90) sleep(0.5) midi(0x80, 64, 0)
sleep(7)
session:request_stop(false, false, UI) sleep(1)
act("record.stop")
vox:rec_enable_control():set_value(0, NONE) keys:rec_enable_control():set_value(0, NONE)
session:disable_record(false, false)
save()

local playlist = vox:playlist()
local function first() for region in playlist:region_list():iter() do return region end end
local function id(object) return object:to_stateful():id():to_s() end
local function find(wanted) for region in playlist:region_list():iter() do if id(region) == wanted then return region end end end
local function list() local found = {} for region in playlist:region_list():iter() do found[id(region)] = region end return found end
local function edit(op, region, change)
  session:begin_reversible_command(op) region:to_stateful():clear_changes()
  change(region)
  session:add_stateful_diff_command(region:to_statefuldestructible()) session:commit_reversible_command(nil)
  act(op, { start = region:position():samples(), length = region:length():samples() })
end
local function rearrange(op, change, start)
  session:begin_reversible_command(op) playlist:to_stateful():clear_changes()
  change()
  session:add_stateful_diff_command(playlist:to_statefuldestructible()) session:commit_reversible_command(nil)
  act(op, start and { start = start })
end
local function copyTo(start) playlist:add_region(ARDOUR.RegionFactory.clone_region(first(), true, false), at(start), 1, false) end

edit("clip.trim", first(), function(region) region:trim_end(at(100000)) end)
edit("clip.trim", first(), function(region) region:trim_front(at(10000)) end)
rearrange("clip.split", function() playlist:split_region(first(), at(48000)) end, 48000)
edit("clip.move", first(), function(region) region:set_position(at(200000)) end)
rearrange("clip.copy", function() copyTo(400000) end, 400000)
rearrange("clip.delete", function() playlist:remove_region(first()) end)
edit("clip.gain", first(), function(region) region:to_audioregion():set_scale_amplitude(0.5) end)
edit("clip.rename", first(), function(region) region:set_name("hook") end)
save()

-- Between two saves: what leaves a transaction, what leaves a last value, and what leaves nothing.
rearrange("clip.copy", function() copyTo(900000) end, 900000)
local before = list()
copyTo(950000)
local short for key, region in pairs(list()) do if not before[key] then short = region end end
act("clip.copy.unlogged", { start = 950000 })
playlist:remove_region(short) short = nil before = nil
act("clip.delete.unlogged")
for _, gain in ipairs { 0.9, 0.7 } do vox:gain_control():set_value(gain, NONE) act("mixer.gain") end
vox:pan_azimuth_control():set_value(0.25, NONE) act("mixer.pan")
keys:mute_control():set_value(1, NONE) act("mixer.mute")
for _, solo in ipairs { 1, 0 } do vox:solo_control():set_value(solo, NONE) sleep(0.2) act("mixer.solo") end
tempo(111) tempo(100)
session:goto_start(false) sleep(0.3) session:request_roll(UI) sleep(0.5) act("transport.play")
session:request_stop(false, false, UI) sleep(0.4) act("transport.stop")
local eq = ARDOUR.LuaAPI.new_plugin(session, "urn:ardour:a-eq", ARDOUR.PluginType.LV2, "")
vox:add_processor_by_index(eq, 0, nil, true) act("plugin.add")
local amp = ARDOUR.LuaAPI.new_luaproc(session, "ACE Amplifier")
vox:add_processor_by_index(amp, 1, nil, true) act("plugin.add.short")
vox:remove_processor(amp, nil, true) amp = nil act("plugin.remove.short")
local gains = vox:gain_control():alist()
session:begin_reversible_command("ramp")
local former = gains:get_state()
gains:add(at(0), 0.1, false, true) gains:add(at(48000), 0.8, false, true)
session:add_command(gains:memento_command(former, gains:get_state())) session:commit_reversible_command(nil)
act("automation.points", { points = 2 })
for region in keys:playlist():region_list():iter() do
  local model = region:to_midiregion():midi_source(0):model()
  local notes = model:new_note_diff_command("notes")
  notes:add(ARDOUR.LuaAPI.new_noteptr(0, Temporal.Beats(0, 480), Temporal.Beats(1, 0), 72, 101))
  notes:add(ARDOUR.LuaAPI.new_noteptr(0, Temporal.Beats(2, 0), Temporal.Beats(0, 960), 76, 64))
  model:apply_diff_command_as_commit(session, notes)
  act("midi.notes", { added = 2 })
end
session:locations():add_range(at(0), at(48000)) act("marker.add")
vox:set_name("Lead") act("track.rename")
save()

vox:gain_control():set_automation_state(ARDOUR.AutoState.Play) act("automation.mode")
ARDOUR.LuaAPI.set_processor_param(eq, 1, 6.0) act("plugin.param")
eq:to_plugininsert():deactivate() act("plugin.bypass")
vox:bounce_range(0, 96000, ARDOUR.InterThreadInfo(), ARDOUR.LuaAPI.nil_proc(), false, "bounced")
act("clip.bounce")
local old = first()
local stretcher = ARDOUR.LuaAPI.Rubberband(old:to_audioregion(), false)
stretcher:set_strech_and_pitch(1.5, 1)
local stretched = stretcher:process(function() return false end)
rearrange("clip.stretch", function() playlist:remove_region(old) playlist:add_region(stretched, at(700000), 1, false) end, 700000)
old = nil stretched = nil
save()

local export = session:simple_export()
export:set_preset("75969a1c-3133-4694-864b-a1fa50e43348")
export:set_name("mix") export:set_range(0, 96000) export:set_folder(directory .. "/export")
assert(export:run_export())
act("export")
save()
eq = nil export = nil
close_session()
truth:close()
