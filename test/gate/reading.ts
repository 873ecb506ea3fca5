import '../adapters/reading.test.js';
import '../adapters/replays.test.js';
