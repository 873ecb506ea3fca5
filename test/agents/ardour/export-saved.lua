-- ardour7-lua export-saved.lua DIRECTORY NAME FRAMES : exports a saved session from its start, into the folder of its exports
AudioEngine:set_backend("None (Dummy)", "", "")
local session = assert(load_session(arg[1], arg[2]))
local export = session:simple_export()
export:set_preset("75969a1c-3133-4694-864b-a1fa50e43348")
export:set_name("mix") export:set_range(0, tonumber(arg[3])) export:set_folder(arg[1] .. "/export")
assert(export:run_export())
export = nil
close_session()
