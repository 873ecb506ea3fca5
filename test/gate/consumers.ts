import '../consumers/consumers.test.js';
import '../consumers/consumers-on-servers.test.js';
import '../service/forged-event.test.js';
import '../service/events.test.js';
