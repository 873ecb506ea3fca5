import '../service/restore.test.js';
import '../service/shredding-servers.test.js';
