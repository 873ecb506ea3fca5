import '../credential/embedded.test.js';
import '../credential/external-readers.test.js';
import '../credential/foreign.test.js';
import '../credential/golden.test.js';
import '../credential/hostile-stores.test.js';
import '../credential/malleability.test.js';
import '../credential/sidecar.test.js';
import '../credential/signature.test.js';
