import '../service/binding.test.js';
import '../service/containers.test.js';
import '../service/large-uploads.test.js';
import '../service/sandbox-fixtures.test.js';
import '../service/sandbox-keys.test.js';
import '../service/stripping.test.js';
import '../service/wav-writers.test.js';
import '../service/verify-file.test.js';
