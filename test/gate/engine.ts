import '../engine/engine.test.js';
import '../engine/lane-test.test.js';
import '../engine/scheduler.test.js';
import '../engine/second-hashes.test.js';
