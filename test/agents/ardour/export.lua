-- ardour7-lua export.lua DIRECTORY NAME : a take of noise in a new session, and an export of the whole session
local directory, name = arg[1], arg[2]
local NONE, UI = PBD.GroupControlDisposition.NoGroup, ARDOUR.TransportRequestSource.TRS_UI
local backend = AudioEngine:set_backend("None (Dummy)", "", "")
backend:set_driver("Normal Speed") backend:set_device_name("Pink Noise")
local session = assert(create_session(directory, name, 48000))
local vox
for track in session:new_audio_track(1, 2, nil, 1, "Vox", ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal, true):iter() do vox = track:to_track() end
vox:rec_enable_control():set_value(1, NONE)
session:maybe_enable_record(false) session:request_roll(UI)
sleep(2)
session:request_stop(false, false, UI) sleep(1)
vox:rec_enable_control():set_value(0, NONE)
session:save_state("")
sleep(1.5)
local export = session:simple_export()
export:set_preset("75969a1c-3133-4694-864b-a1fa50e43348")
export:set_name("mix") export:set_folder(directory .. "/export")
assert(export:run_export())
session:save_state("")
export = nil
close_session()
