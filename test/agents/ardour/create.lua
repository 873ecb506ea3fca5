-- ardour7-lua create.lua DIRECTORY NAME : a session with one audio track
AudioEngine:set_backend("None (Dummy)", "", "")
local session = assert(create_session(arg[1], arg[2], 48000))
session:new_audio_track(1, 2, nil, 1, "Vox", ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal, true)
session:save_state("")
close_session()
