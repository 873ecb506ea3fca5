import '../service/limits.test.js';
import '../service/proxy.test.js';
import '../service/signed-calls.test.js';
import '../service/tls.test.js';
import '../service/transcript.test.js';
import '../service/start-and-stop.test.js';
import '../service/artifact.test.js';
