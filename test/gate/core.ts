import '../core/agreement.test.js';
import '../core/build.test.js';
import '../core/corpus.test.js';
import '../core/fork.test.js';
import '../core/samples-wave.test.js';
import '../core/sha256.test.js';
import '../core/structure.test.js';
