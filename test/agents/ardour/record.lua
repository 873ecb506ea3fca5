-- ardour7-lua record.lua DIRECTORY NAME DRIVER SECONDS : takes of noise of one and of two channels, at the speed of a driver of the dummy backend
local directory, name, driver, seconds = arg[1], arg[2], arg[3], tonumber(arg[4])
local NONE, UI = PBD.GroupControlDisposition.NoGroup, ARDOUR.TransportRequestSource.TRS_UI
local backend = AudioEngine:set_backend("None (Dummy)", "", "")
-- In long buffers the device loses less of the time.
backend:set_driver(driver) backend:set_device_name("Pink Noise") backend:set_buffer_size(8192)
local session = assert(create_session(directory, name, 48000))
local tracks = {}
for name, channels in pairs { Vox = 1, Guitar = 2 } do
  for track in session:new_audio_track(channels, 2, nil, 1, name, ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal, true):iter() do tracks[#tracks + 1] = track:to_track() end
end
session:save_state("")
sleep(1.5)
for _, track in ipairs(tracks) do track:rec_enable_control():set_value(1, NONE) end
session:maybe_enable_record(false) session:request_roll(UI)
sleep(seconds)
session:request_stop(false, false, UI) sleep(1)
session:save_state("")
sleep(1.5)
close_session()
