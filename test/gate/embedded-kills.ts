import '../adapters/embedded-kill.test.js';
