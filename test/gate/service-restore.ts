import '../service/released-data.test.js';
import '../service/restore.test.js';
import '../service/shredding-servers.test.js';
