import '../adapters/reading.test.js';
import '../adapters/replays.test.js';
import '../adapters/report-composer.test.js';
import '../adapters/signature-checks.test.js';
