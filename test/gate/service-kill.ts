import '../service/kill.test.js';
import '../service/kept-rows-kill.test.js';
import '../service/leftovers.test.js';
import '../service/edited-row.test.js';
import '../service/start-guards.test.js';
