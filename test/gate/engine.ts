import '../engine/engine.test.js';
import '../engine/scheduler.test.js';
