import '../service/audit-stores.test.js';
import '../service/doctor.test.js';
