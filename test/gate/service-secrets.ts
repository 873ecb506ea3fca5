import '../service/backup.test.js';
import '../service/backup-drill.test.js';
import '../service/content-keys-lost.test.js';
import '../service/named-operators.test.js';
import '../service/secrecy.test.js';
import '../service/secret-rotation.test.js';
import '../service/shredding.test.js';
import '../service/environments.test.js';
