import '../capture/capture.test.js';
import '../capture/simulate.test.js';
