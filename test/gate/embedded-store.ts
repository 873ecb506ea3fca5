import '../adapters/embedded.test.js';
import '../adapters/embedded-events.test.js';
import '../adapters/encrypted-assets.test.js';
import '../adapters/encrypted-stores.test.js';
import '../adapters/assets.test.js';
import '../adapters/journals.test.js';
import '../adapters/local-bus.test.js';
import '../adapters/machine-doctor.test.js';
